import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { findPlaceObstacle, makePlace, residentPlace } from '../../src/resident/place.ts';
import { CleanUps } from '../gateway/processes.ts';

const cleanUps = new CleanUps();
afterEach(cleanUps.run);

describe('the place of a resident', () => {
  test('is a folder of the data directory, which only its account may look into', () => {
    const data = join(cleanUps.folder(), 'data');
    const place = residentPlace(data);
    expect(dirname(place.socket)).toBe(join(data, 'resident'));
    expect(findPlaceObstacle(place)).toBeUndefined();
    expect(makePlace(place)).toBeUndefined();
    expect(statSync(place.folder).mode & 0o777).toBe(0o700);
  });

  test('has a socket of a short name where the data directory has a long one, another for each', () => {
    const [one, other] = ['a', 'b'].map((name) => residentPlace(`/${'long/'.repeat(30)}${name}`, 'linux'));
    expect(one?.socket.startsWith(join(tmpdir(), `counterfoil-${userInfo().uid}-`))).toBe(true);
    expect(one?.socket).not.toBe(other?.socket);
    expect(Buffer.byteLength(one?.socket ?? '')).toBeLessThanOrEqual(100);
  });

  test('is a named pipe on Windows', () => {
    expect(residentPlace('/data', 'win32').socket).toMatch(/^\\\\\.\\pipe\\counterfoil-[0-9a-f]{16}$/);
  });

  test('is not relied on where others could be in it, or where it is something else', () => {
    const folder = cleanUps.folder();
    const open = residentPlace(join(folder, 'open'));
    mkdirSync(open.folder, { recursive: true });
    chmodSync(open.folder, 0o750);
    expect(makePlace(open)).toBe(`other accounts may look into ${open.folder}`);
    const file = residentPlace(join(folder, 'file'));
    mkdirSync(dirname(file.folder));
    writeFileSync(file.folder, '');
    expect(findPlaceObstacle(file)).toBe(`${file.folder} is no folder`);
    const linked = residentPlace(join(folder, 'linked'));
    mkdirSync(dirname(linked.folder));
    symlinkSync(folder, linked.folder);
    expect(findPlaceObstacle(linked)).toBe(`${linked.folder} is no folder`);
  });

  test.runIf(userInfo().uid === 0)('is not relied on where it belongs to another account', async () => {
    const { chownSync } = await import('node:fs');
    const place = residentPlace(join(cleanUps.folder(), 'data'));
    makePlace(place);
    chownSync(place.folder, 65_534, 65_534);
    expect(findPlaceObstacle(place)).toBe(`${place.folder} belongs to another account`);
  });
});
