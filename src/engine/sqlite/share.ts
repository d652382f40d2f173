// Tested in test/engine/sqlite/thread.test.ts.
import type { MessagePort } from 'node:worker_threads'
import type { Changes, CheckTime } from './versions.ts'

/** What another thread of this process needs to use the same store. A message can have it, with the port in its transfer list. */
export interface StoreShare extends WriterLink {
  readonly path: string
  /** The identity of the file that the store has opened. */
  readonly identity: string
  readonly changes: Changes
}

/** What a thread shares with the thread that writes, and with no other: the port for messages, and the time of its checks. */
export interface WriterLink {
  readonly port: MessagePort
  readonly checkedAtMs: CheckTime
}
