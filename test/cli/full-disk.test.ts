import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { queryAll, snapshot } from '../store/sqlite/files.ts'
import { MOUNTS, mountDisk } from '../support/disk.ts'
import { runPlantstore } from '../support/executable.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { done, refusal } from './support/answers.ts'
import { fillDatabase, makeDatabase, serveDatabase } from './support/database.ts'
import { codesOf } from './support/service-client.ts'

const MIB = 1024 ** 2

/** Lines of user `me` for an import, whose names have this length. */
const linesOf = (count: number, length: number) =>
  Array.from({ length: count }, (_, id) => `${JSON.stringify({ user: 'me', id, name: 'x'.repeat(length) })}\n`).join('')

describe.skipIf(lacks(MOUNTS)).concurrent('without space', () => {
  test('backup leaves nothing, and says so', async () => {
    using made = await fillDatabase(10_000)
    using disk = mountDisk(100_000)
    const file = join(disk.path, 'plants.db')

    expect(await made.run('backup', file)).toEqual(refusal(1, `${file} cannot be made: there is no space: make room.`))
    expect(readdirSync(disk.path)).toEqual([])
  })

  test('restore leaves the database as it was', async () => {
    using made = await fillDatabase(1000)
    await made.run('backup', join(made.folder, 'plants.db'))
    using disk = mountDisk(200_000)
    const database = join(disk.path, 'plantstore.db')
    // In a process that has ended, because deleted files take space while they are open.
    await runPlantstore(['token', 'create', '--user', 'other', '--database', database])
    disk.fillUp(20_000)
    const before = snapshot(disk.path)
    const args = ['restore', join(made.folder, 'plants.db'), '--force', '--database', database]
    const { stderr, exitCode } = await runPlantstore(args)

    expect(exitCode).toBe(1)
    expect(stderr).toMatch(/there is no space/)
    expect(snapshot(disk.path)).toEqual(before)
  })

  test('import ends with 3 and imports nothing if the staging table has no room', async () => {
    using disk = mountDisk(3 * MIB)
    using made = makeDatabase(disk.path)
    await createTokenIn(made.database)
    // More than is kept in memory.
    const answer = await made.feed(linesOf(3000, 30_000), 'import')

    const why = `The lines wait in ${made.folder} until all are checked, and there is no room for them`
    expect(answer).toMatchObject({ stdout: '', exitCode: 3 })
    expect(answer.stderr).toEndWith(
      `plantstore: ${why}: nothing was imported. Make room, and run the same command again.\n`,
    )
    expect(readdirSync(made.folder)).toEqual(['plantstore.db'])
    expect(queryAll(made.database, 'select count(*) from plants')).toEqual([[0n]])
  })

  test.each([
    ['fail', ' with --on-conflict skip'],
    ['replace', ''],
  ])('import ends with 3, and says how many lines are in and how to go on: --on-conflict %s', async (rule, option) => {
    using disk = mountDisk(4_000_000)
    using made = makeDatabase(disk.path)
    await createTokenIn(made.database)
    const { stderr, exitCode } = await made.feed(linesOf(15_000, 300), 'import', '--on-conflict', rule)
    const stopped =
      /^Stopped: (\d+) of 15000 lines are in\. Run the same command again(.*) to import the rest\.\nplantstore: The database is out of space or read-only /m
    const [, told, advised] = stopped.exec(stderr) ?? []

    expect([exitCode, advised]).toEqual([3, option])
    expect(queryAll(made.database, 'select count(*) from plants')).toEqual([[BigInt(told ?? 0)]])
  })

  test('token revoke is refused with exit code 3, and done once there is room', async () => {
    using disk = mountDisk(MIB)
    await using service = await serveDatabase([], {}, disk.path)
    const { server, token, database } = service
    const revoke = () => service.run('token', 'revoke', '1')
    disk.fillUp()
    const refused = [await revoke(), await codesOf(server, [token])]
    await server.end()
    disk.makeRoom()
    disk.fillUp()
    const refusedAtRest = await revoke()
    const another = join(disk.path, 'new.db')
    const notMade = await runPlantstore(['token', 'create', '--user', 'me', '--database', another])
    disk.makeRoom()

    const full = refusal(3, 'The database is out of space or read-only and took no change: make room.')
    expect(refused).toEqual([full, [200]])
    expect(refusedAtRest).toEqual(refusal(3, `There is no space for the database ${database}: make room.`))
    expect(notMade).toEqual(refusal(3, `There is no space for the database ${another}: make room.`))
    expect(await revoke()).toEqual(done('Revoked token 1 of user me (write).'))
  })
})
