// Tested in test/fault/sigterm.test.ts.
import type { Logger } from '../../log.ts'
import type { Io } from '../io.ts'
import type { ServeOptions } from './http-service.ts'
import type { Shutdown } from './shutdown.ts'
import type { Threads } from './threads.ts'

/** What all parts of a server need. */
export interface ServerContext {
  readonly options: ServeOptions
  readonly shutdown: Shutdown
  readonly threads: Threads
  readonly log: Logger
  readonly io: Io
}
