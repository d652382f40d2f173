// Tested in test/cli/transcripts/command-line.txt.
import { homepage, version } from '../package.json'

/** The commit that a release is made of. The compiler puts it here; elsewhere there is none. */
declare const RELEASE_COMMIT: string | undefined

/** The version of the executable. That of a release has its commit as build metadata (Semantic Versioning 2.0.0, section 10). */
export const VERSION = typeof RELEASE_COMMIT === 'undefined' ? version : `${version}+${RELEASE_COMMIT}`

/** The address of the repository, with the documentation. */
export const HOMEPAGE = homepage
