import manifest from '../../package.json'

/** What package.json has until somebody publishes releases. */
const [OWNER, NO_ADDRESS] = ['OWNER', '.invalid']

const [, owner = OWNER] = /^https:\/\/github\.com\/([\w-]+)\/plantstore$/.exec(manifest.homepage) ?? []

/** Throws while package.json does not say who publishes, because all that is published names the image and the repository. */
export function checkPublisher(): void {
  if (owner === OWNER)
    throw new Error('replace OWNER in homepage of package.json by the account on GitHub that publishes')
  if (manifest.author.includes(NO_ADDRESS)) throw new Error('replace the address in author of package.json by your own')
}

/** A text with the names of the repository and of the image, for which registries take only lower case. */
export const published = (text: string): string =>
  text
    .replaceAll(`ghcr.io/${OWNER}/plantstore`, `ghcr.io/${owner.toLowerCase()}/plantstore`)
    .replaceAll(`${OWNER}/plantstore`, `${owner}/plantstore`)
