import { version } from '../package.json'

/** The executable's version. The interface that it serves has one of its own. */
export const VERSION = version
