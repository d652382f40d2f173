// Tested in test/cli/transcripts/command-line.txt.
import { homepage, version } from '../package.json'

/** The commit that a release is made of. The compiler puts it here; elsewhere there is none. */
declare const RELEASE_COMMIT: string | undefined

/**
 * The executable's version; that of a release says its commit, as build metadata (Semantic Versioning 2.0.0, section 10).
 * The interface that it serves has a version of its own.
 */
export const VERSION = typeof RELEASE_COMMIT === 'undefined' ? version : `${version}+${RELEASE_COMMIT}`

/** The address of the repository, with the documentation. */
export const HOMEPAGE = homepage
