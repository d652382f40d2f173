import { describe, expect, test } from 'bun:test'
import { readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { answerOf } from '../cli/support/service-client.ts'
import { queryAll } from '../store/sqlite/files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { IS_LONG } from '../support/long.ts'
import { randomNumbers, seedsOf } from '../support/random.ts'
import { lacks } from '../support/requirement.ts'
import { STRACE } from '../support/strace.ts'
import { createTokenIn } from '../support/tokens.ts'
import { testRounds } from './rounds.ts'
import { CALLS_THAT_CHANGE, type Point, startStopped } from './stopped-command.ts'

const CREATED = /created a new, empty store/gi
const NO_LINKS = 'link:error=EPERM'
/** The calls by which a database gets its name. */
const NAMING = ['link', 'rename', 'unlink']
const [SEED = 1] = seedsOf('FAULT_SEED', 1)

interface Place {
  readonly where: string
  readonly prepare?: (database: string) => void
  readonly inject?: readonly string[]
}

const PLACES: readonly Place[] = [
  { where: 'nothing is' },
  { where: 'an empty file is', prepare: (database) => writeFileSync(database, '') },
  { where: 'a link to nothing is', prepare: (database) => symlinkSync('made.db', database) },
  { where: 'nothing is, on a file system without links,', inject: [NO_LINKS] },
  {
    where: 'an empty file is, on a file system without links,',
    prepare: (database) => writeFileSync(database, ''),
    inject: [NO_LINKS],
  },
]

function makePlace({ prepare }: Place) {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  prepare?.(database)
  return { path: folder.path, database, [Symbol.dispose]: folder[Symbol.dispose] }
}

const startFirst = ({ path, database }: ReturnType<typeof makePlace>, { inject = [] }: Place, stopAt?: Point) =>
  startStopped(['token', 'create', '--user', 'first', '--database', database], {
    ...{ cwd: path, trace: join(path, 'trace'), calls: CALLS_THAT_CHANGE, inject, stopAt },
  })

/** The calls that name the database, and those before them, or one of these. A call that fails cannot stop the process, too. */
async function callsOfFirstStart(place: Place): Promise<readonly Point[]> {
  using made = makePlace(place)
  const probe = startFirst(made, place)
  await probe.finish()
  const points = await probe.points()
  const named = points.findLastIndex(({ name }) => name === 'link' || name === 'rename')
  const last = points.slice(named)
  last.length = last.findIndex(({ name }) => !NAMING.includes(name))
  const before = points.slice(0, named).filter(({ name }) => name !== 'link')
  const some = IS_LONG ? before : before.splice(randomNumbers(SEED)(before.length), 1)
  return [...some, ...last.filter(({ name }) => place.inject === undefined || name !== 'link')]
}

describe.skipIf(lacks(STRACE))('wherever a first start is stopped', () => {
  for (const place of PLACES) {
    test.each([true, false])(
      `another one makes or opens the database where ${place.where} if the first one is killed: %p`,
      async (isKilled) => {
        for (const stopAt of await callsOfFirstStart(place)) {
          using made = makePlace(place)
          const first = startFirst(made, place, stopAt)
          expect(await first.isStopped()).toEqual({ stopped: true })

          if (isKilled) first.child.kill('SIGKILL')
          if (isKilled) await first.ended
          const second = await runPlantstore(['token', 'create', '--user', 'second', '--database', made.database])
          const { exitCode, stderr } = await first.finish()

          const isRefused = !isKilled && second.stderr.includes('is locked by another process')
          const users = [...(isKilled ? [] : ['first']), ...(isRefused ? [] : ['second'])]
          const codes = [isKilled ? 0 : exitCode, second.exitCode]
          expect({ stopAt, codes, told: second.stderr }).toEqual({
            ...{ stopAt, codes: [0, isRefused ? 3 : 0], told: expect.not.stringContaining('Error') },
          })
          if (!isKilled) expect((stderr + second.stderr).match(CREATED)).toHaveLength(1)
          expect(queryAll(made.database, 'select name from users order by name').flat()).toEqual(users)
          expect(queryAll(made.database, 'pragma integrity_check').flat()).toEqual(['ok'])
          expect(statSync(made.database).nlink).toBe(1)
        }
      },
    )
  }
})

describe('two servers that start at once', () => {
  for (const place of PLACES) {
    const needs = place.inject === undefined ? [] : [STRACE]
    testRounds(`make and serve one database where ${place.where}`, { short: 2, long: 50, needs }, async () => {
      using made = makePlace(place)
      const faults = (place.inject ?? []).flatMap((fault) => ['-e', `inject=${fault}`])
      const under = faults.length > 0 ? ['strace', '-D', '-f', '-o', '/dev/null', '-e', 'trace=link', ...faults] : []
      const servers = await Promise.all([1, 2].map(() => serve(made.database, [], { under })))
      const token = await createTokenIn(made.database)

      for (const [index, server] of servers.entries()) {
        const body = { id: index, name: 'Fern' }
        expect(await answerOf(server.request('POST', '/plants', { token, body }))).toMatchObject({ status: 200 })
      }
      for (const server of servers) expect(await server.end()).toBe(0)
      expect(
        servers
          .map(({ stdout }) => stdout())
          .join('')
          .match(CREATED),
      ).toHaveLength(1)
      expect(queryAll(made.database, 'select id from plants order by id').flat().map(Number)).toEqual([0, 1])
      expect(readdirSync(made.path).filter((name) => name.includes('.partial-'))).toEqual([])
    })
  }
})
