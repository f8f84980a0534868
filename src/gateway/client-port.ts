// The way to one client of the session generation, whatever it speaks over.

import type { McpFrame } from '../destination/mcp/frame.ts';

/** The way to one client. What is sent when it is gone is dropped. */
export interface ClientPort {
  /**
   * Answers the request under `key`; under none, what could not be read.
   * @param written told whether the operating system has taken it
   */
  answer(key: string | undefined, frame: string | Buffer, written?: (isWritten: boolean) => void): void;
  /** Passes on a message of the server's own; `about`: the request on whose stream it came, where that is known. */
  pass(frame: McpFrame, about: string | undefined): void;
}
