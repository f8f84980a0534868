import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // Starts nothing until a test file asks.
    globalSetup: ['test/store/fixtures/postgres-setup.ts'],
    // Processes, not threads: tests change signals and environments, start children, and load a native store.
    pool: 'forks',
    // More than there are cores: most of the time a test waits for processes that it has started.
    maxWorkers: 4,
    // The files of one worker share what they import: loading it anew for each is a quarter of the whole run. What a
    // test changes of its process, it puts back. On PostgreSQL each file has a database of its own.
    // oxlint-disable-next-line node/no-process-env -- a run of tests is configured by the environment.
    isolate: process.env['TEST_STORE'] === 'postgres',
    // Long enough for a busy machine. A test that passes does not wait for it: tests wait on signals.
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 10_000,
  },
});
