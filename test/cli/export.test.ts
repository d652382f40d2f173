import { expect, test } from 'bun:test'
import { COMMAND } from '../support/executable.ts'
import { fillDatabase } from './support/database.ts'

/** Two users have so many plants. That is more than a pipe takes, and more than one batch. */
const MANY_PLANTS = 25_000

test('export ends at once by SIGTERM while its reader is slow, and says how to go on', async () => {
  using made = await fillDatabase(MANY_PLANTS)
  const child = Bun.spawn([...COMMAND, 'export', '--database', made.database], { stdout: 'pipe', stderr: 'pipe' })
  await child.stdout.getReader().read()

  child.kill('SIGTERM')

  expect(await child.exited).toBe(143)
  expect(await child.stderr.text()).toMatch(
    new RegExp(
      `^Stopped by SIGTERM: \\d{1,5} of ${2 * MANY_PLANTS} plants are printed\\. The output is not whole: run the same command again\\.\n$`,
      'm',
    ),
  )
})
