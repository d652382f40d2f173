import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'
import { COMMAND } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { peakMib } from '../support/process.ts'
import { createTokenIn } from '../support/tokens.ts'
import { ROUNDS_TIMEOUT_MS, testLong } from './rounds.ts'

const MILLION = 1_000_000
const MIB = 1024 ** 2
/** The CPU time that a million plants may take each way, which is the time on an idle machine with a fast disk. */
const CPU_MAX_S = 9
/** The most memory that an export or an import may take. */
const MEMORY_MAX_BYTES = 250 * MIB
/** How much more memory three million plants may take than one million: memory does not grow with them. */
const MEMORY_SHARE_MAX = 1.25
const LOOK_MS = 20
/** The fewest users and tokens to list. */
const ROWS = 100_000
/** The same share for lists. The garbage of their pages is collected at times, so their memory varies by a quarter. */
const LIST_MEMORY_SHARE_MAX = 1.5

testLong(
  'export and import of a million plants each take under 9 s of CPU time, and of three million no more memory',
  async () => {
    using folder = makeFolder()
    const peaks: Record<string, number[]> = { export: [], import: [] }
    // The peak of a run depends on when garbage is collected, so a million is tried twice.
    for (const [run, plants] of [MILLION, MILLION, 3 * MILLION].entries()) {
      const [from, to] = ['from', 'to'].map((name) => join(folder.path, `${name}-${run}.db`))
      const lines = join(folder.path, `${run}.jsonl`)
      for (const database of [from, to]) await createTokenIn(database ?? '')
      addPlants(from ?? '', plants)

      for (const [name, args, stdout] of [
        ['export', ['--database', from ?? ''], Bun.file(lines)],
        ['import', [lines, '--database', to ?? ''], 'ignore'],
      ] as const) {
        const { seconds, cpuSeconds, peakBytes, exitCode } = await measure([name, ...args], stdout)
        console.log(
          `${name} of ${plants}: ${seconds.toFixed(1)} s, CPU time ${cpuSeconds.toFixed(1)} s, ${Math.round(peakBytes / MIB)} MiB`,
        )
        expect(exitCode).toBe(0)
        expect(peakBytes).toBeLessThan(MEMORY_MAX_BYTES)
        expect(cpuSeconds).toBeLessThan((CPU_MAX_S * plants) / MILLION)
        peaks[name]?.push(peakBytes)
      }
    }
    for (const [first = 0, second = 0, threeMillion = Number.POSITIVE_INFINITY] of Object.values(peaks)) {
      expect(threeMillion / Math.max(first, second)).toBeLessThan(MEMORY_SHARE_MAX)
    }
  },
  ROUNDS_TIMEOUT_MS,
)

testLong(
  'token list and user list of 300,000 rows take no more memory than of 100,000',
  async () => {
    using folder = makeFolder()
    const peaks: Record<string, number[]> = { token: [], user: [] }
    for (const rows of [ROWS, 3 * ROWS]) {
      const database = join(folder.path, `${rows}.db`)
      await createTokenIn(database)
      addUsers(database, rows)

      for (const name of ['token', 'user']) {
        const { peakBytes, exitCode } = await measure([name, 'list', '--database', database], 'ignore')
        console.log(`${name} list of ${rows}: ${Math.round(peakBytes / MIB)} MiB`)
        expect(exitCode).toBe(0)
        expect(peakBytes).toBeLessThan(MEMORY_MAX_BYTES)
        peaks[name]?.push(peakBytes)
      }
    }
    for (const [few = 0, many = Number.POSITIVE_INFINITY] of Object.values(peaks)) {
      expect(many / few).toBeLessThan(LIST_MEMORY_SHARE_MAX)
    }
  },
  ROUNDS_TIMEOUT_MS,
)

/** Adds users with a token each. */
function addUsers(database: string, count: number): void {
  using db = new Database(database)
  db.run(
    `with recursive series (number) as (select 1 union all select number + 1 from series where number < ?)
     insert into users (name, created_at_ms) select 'user-' || number, 0 from series`,
    [count],
  )
  db.run(
    `insert into tokens (user_id, hash, scope, label, created_at_ms)
     select id, randomblob(32), 'write', 'the phone', 0 from users`,
  )
}

/** Runs a command and measures its time, its CPU time and its peak memory. */
async function measure(args: readonly string[], stdout: 'ignore' | Bun.BunFile) {
  const begunMs = performance.now()
  const child = Bun.spawn([...COMMAND, ...args], { stdio: ['ignore', stdout, 'ignore'] })
  let peakBytes = 0
  while (child.exitCode === null && child.signalCode === null) {
    // A process that has ended has no memory.
    peakBytes = peakMib(child.pid) * MIB || peakBytes
    await Bun.sleep(LOOK_MS)
  }
  const seconds = (performance.now() - begunMs) / 1000
  const cpuSeconds = Number(child.resourceUsage()?.cpuTime.total ?? 0n) / 1e6
  return { seconds, cpuSeconds, peakBytes, exitCode: await child.exited }
}
