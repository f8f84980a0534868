import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Starts nothing until a test file asks.
    globalSetup: ['test/store/fixtures/postgres-setup.ts'],
    // Processes, not threads: tests change signals and environments, start children, and load a native store.
    pool: 'forks',
    // Two at a time: many tests start processes of their own, and what they measure must not be each other.
    maxWorkers: 2,
    // The files of one worker share what they import: loading it anew for each is a quarter of the whole run. What a
    // test changes of its process, it puts back. On PostgreSQL each file has a database of its own.
    isolate: process.env['TEST_STORE'] === 'postgres',
    // Long enough for a busy machine. A test that passes does not wait for it: tests wait on signals.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
  },
});
