import type { Requirement } from './requirement.ts'

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

/** Only root can become another user. */
export const MAY_CHANGE_USER: Requirement = {
  missing: 'root or setpriv is missing',
  isMet: () => process.getuid?.() === 0 && SETPRIV.isMet(),
}
