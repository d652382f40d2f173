import type { Requirement } from './requirement.ts'

/** Debian's user without rights. */
export const NOBODY = 65534

/** Runs a command that has only the rights that permissions give. Root may write anywhere unless it lacks these capabilities. */
export const RESTRICTED: readonly string[] =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override,-dac_read_search']
    : []

export const SETPRIV: Requirement = {
  missing: 'setpriv is missing or fails',
  isMet() {
    const [name = 'true'] = RESTRICTED
    return Bun.which(name) !== null && Bun.spawnSync([...RESTRICTED, 'true']).exitCode === 0
  },
}

/** Runs a command as a user who is not root. */
export const AS_NOBODY: readonly string[] =
  process.getuid?.() === 0 ? ['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'] : []

/** A program that such a user must run. Below a private home, where Bun's installer puts Bun, that user cannot. */
export function nobodyMayRun(...command: readonly string[]): Requirement {
  // setpriv itself still has the rights of root when it runs a program, and `env` has none.
  const [name = '', ...args] = [...AS_NOBODY, 'env', ...command, '--version']
  const isMet = () => Bun.which(name) !== null && Bun.spawnSync([name, ...args]).exitCode === 0
  return { missing: `other users may not run ${command.join(' ')}`, isMet, isMetInCi: isMet }
}

/** Only root can become another user. */
export const MAY_CHANGE_USER: Requirement = {
  missing: 'root or setpriv is missing',
  isMet: () => process.getuid?.() === 0 && SETPRIV.isMet(),
}
