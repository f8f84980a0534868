import { mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { isPassphrase, passphraseProblem, readVerifier, verifierFor } from '../../src/access/passphrase.ts';
import { PASSPHRASE_FILE, readVerifierFile, writeVerifierFile } from '../../src/access/passphrase-file.ts';

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'counterfoil-access-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

describe('what is kept of a passphrase', () => {
  test('tells the right one from others, however its characters were composed, and holds none of it', async () => {
    const verifier = await verifierFor('caf\u00e9 horse battery');
    expect(await isPassphrase('cafe\u0301 horse battery', verifier)).toBe(true);
    expect(await isPassphrase('cafe horse battery', verifier)).toBe(false);
    expect(JSON.stringify(verifier)).not.toContain('horse');
    expect(verifier).toMatchObject({ kind: 'scrypt', cost: 131_072, blockSize: 8, parallelization: 1 });
  });

  test('the same passphrase is kept differently each time', async () => {
    const [one, other] = [
      await verifierFor('correct horse battery'),
      await verifierFor('correct horse battery'),
    ];
    expect(one.salt).not.toBe(other.salt);
    expect(one.hash).not.toBe(other.hash);
  });

  test('a file that asks for costs nobody would have chosen is not read', async () => {
    const verifier = await verifierFor('correct horse battery');
    const texts = [{ cost: 2 }, { cost: 2 ** 30 }, { salt: 'AA==' }, { kind: 'md5' }, { hash: 7 }].map(
      (wrong) => JSON.stringify({ ...verifier, ...wrong }),
    );
    expect([...texts, 'null', '[]', '{', ''].map(readVerifier)).toEqual(Array.from({ length: 9 }));
    expect(readVerifier(JSON.stringify(verifier))).toEqual(verifier);
  });

  test('what is too short, too long or all alike is no passphrase', () => {
    expect(passphraseProblem('short')).toBe('it has 5 characters; at least 12 are wanted');
    expect(passphraseProblem('a'.repeat(300))).toMatch(/^it has 300 characters/);
    expect(passphraseProblem('ababababababab')).toMatch(/^it repeats/);
    expect(passphraseProblem('correct horse battery')).toBeUndefined();
  });

  test('its file is this account’s alone, the first one stays, and a change replaces it', async () => {
    const directory = await folder();
    expect(await readVerifierFile(directory)).toEqual({ found: false });
    const [one, other] = [
      await verifierFor('correct horse battery'),
      await verifierFor('another one entirely'),
    ];
    expect(await writeVerifierFile(directory, one, false)).toBeDefined();
    expect(await writeVerifierFile(directory, other, false)).toBeUndefined();
    expect(await readVerifierFile(directory)).toMatchObject({ found: true, verifier: one });
    expect((await stat(join(directory, PASSPHRASE_FILE))).mode & 0o777).toBe(0o600);
    const text = await writeVerifierFile(directory, other, true);
    expect(await readFile(join(directory, PASSPHRASE_FILE), 'utf8')).toBe(text);
    expect(await readVerifierFile(directory)).toMatchObject({ found: true, verifier: other });
  });
});
