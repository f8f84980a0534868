import { describe, expect, it } from 'vitest';
import { fitsVersion, isBrokenRange, mayOverlap } from '../../src/contracts/server-versions.ts';

describe('fitsVersion', () => {
  it.each<[string | string[], string, boolean]>([
    ['*', '1.2.3', true],
    ['*', 'build 7', true],
    ['1.2.3', '1.2.3', true],
    ['1.2.3', '1.2.4', false],
    ['v1.2.3', '1.2.3', true],
    ['1.2', '1.2.9', true],
    ['1.2', '1.3.0', false],
    ['1.x', '1.9.0', true],
    ['1.x', '2.0.0', false],
    ['^1.2.3', '1.9.0', true],
    ['^1.2.3', '1.2.2', false],
    ['^1.2.3', '2.0.0', false],
    ['^0.2.3', '0.2.9', true],
    ['^0.2.3', '0.3.0', false],
    ['^0.0.3', '0.0.4', false],
    ['~1.2.3', '1.2.9', true],
    ['~1.2.3', '1.3.0', false],
    ['>=1.2 <2', '1.2.0', true],
    ['>= 1.2  < 2', '1.9.9', true],
    ['>=1.2 <2', '2.0.0', false],
    ['>1.2', '1.2.9', false],
    ['>1.2', '1.3.0', true],
    ['<=1.2', '1.2.9', true],
    ['<1 || >=3', '3.1.0', true],
    ['<1 || >=3', '2.0.0', false],
    [['0.1.0', '^2.0.0'], '2.4.0', true],
    ['>=2026.8', '2026.8.31', true],
    // What cannot be compared fits only by name.
    ['>=1', '2.0.0-beta.1', false],
    [['2.0.0-beta.1'], '2.0.0-beta.1', true],
    ['>=1', 'nightly', false],
    [['nightly'], 'nightly', true],
    ['>=1', '', false],
  ])('%j takes %j: %j', (versions, version, fits) => {
    expect(fitsVersion(versions, version)).toBe(fits);
  });
});

describe('mayOverlap', () => {
  it.each<[string | string[], string | string[], boolean]>([
    ['*', '1.0.0', true],
    ['>=1 <2', '>=2', false],
    ['>=1 <=2', '>=2', true],
    ['^1.2', '1.5.x', true],
    [['1.0.0'], ['1.0.1'], false],
    [['nightly'], ['nightly'], true],
    [['nightly'], '>=1', false],
    ['>2 <1', '1.5.0', false],
  ])('%j and %j: %j', (a, b, overlap) => {
    expect(mayOverlap(a, b)).toBe(overlap);
    expect(mayOverlap(b, a)).toBe(overlap);
  });
});

describe('isBrokenRange', () => {
  it.each([
    ['*', false],
    ['1.2.3', false],
    ['nightly', false],
    ['>=1.2 <2', false],
    ['1 || 2', false],
    ['>=one', true],
    ['>= ', true],
    ['1.2 beta', true],
    ['^', true],
  ])('%j: %j', (range, broken) => {
    expect(isBrokenRange(range)).toBe(broken);
  });
});
