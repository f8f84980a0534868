// The smallest image and the smallest sound that are whole files, made byte by byte.

import { crc32, deflateSync } from 'node:zlib';

/** One red pixel. */
export const IMAGE = { mimeType: 'image/png', data: onePixel(0xff, 0, 0).toString('base64') };
/** Eight samples of silence. */
export const AUDIO = { mimeType: 'audio/wav', data: silence(8).toString('base64') };

/** PNG, 3rd edition (W3C): signature, IHDR, IDAT, IEND. */
function onePixel(red, green, blue) {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(1, 0);
  header.writeUInt32BE(1, 4);
  // Eight bits for each of red, green and blue.
  header.writeUInt8(8, 8);
  header.writeUInt8(2, 9);
  const row = Buffer.from([0, red, green, blue]);
  return Buffer.concat([
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(row)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(name, data) {
  const named = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const whole = Buffer.alloc(named.length + 8);
  whole.writeUInt32BE(data.length, 0);
  named.copy(whole, 4);
  whole.writeUInt32BE(crc32(named), named.length + 4);
  return whole;
}

/** RIFF/WAVE: one channel of 16 bits, 8000 samples a second. */
function silence(samples) {
  const bytes = samples * 2;
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(36 + bytes, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(8_000, 24);
  header.writeUInt32LE(16_000, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(bytes, 40);
  return Buffer.concat([header, Buffer.alloc(bytes)]);
}
