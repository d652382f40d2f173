/** What runs a command that may do only what permissions allow: root may write anywhere, unless it is without these. */
export const RESTRICTED: readonly string[] =
  process.getuid?.() === 0
    ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search', '--inh-caps=-dac_override,-dac_read_search']
    : []

/** Whether the tests of permissions are skipped: where setpriv does not work. With `CI=true` they fail instead. */
export const RESTRICTION_IS_SKIPPED = process.env.CI !== 'true' && !canRestrict()
/** For the names of those tests, to say that they are skipped. */
export const RESTRICTION_NOTE = RESTRICTION_IS_SKIPPED ? ' (skipped: setpriv does not work here)' : ''

function canRestrict(): boolean {
  const [program = 'true'] = RESTRICTED
  return Bun.which(program) !== null && Bun.spawnSync([...RESTRICTED, 'true']).exitCode === 0
}
