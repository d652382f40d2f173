import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { runPlantstore } from '../support/executable.ts'
import { makeDatabase, serveDatabase } from './support/database.ts'

test.each([
  ['a unix socket has one', (folder: string) => ['--listen', `unix:${join(folder, 's')}`]],
  ['--rate-limit counts in one', () => ['--rate-limit', '10/s']],
  [
    'the keys of --jwt-issuer are read by one',
    () => ['--jwt-issuer', 'https://id.example.org', '--jwt-audience', 'plants'],
  ],
])('serve with several threads is refused because %s', async (reason, flagsIn) => {
  using made = makeDatabase()

  expect(await made.run('serve', '--listen', '127.0.0.1:0', '--threads', '2', ...flagsIn(made.folder))).toEqual({
    exitCode: 2,
    stdout: '',
    stderr: `plantstore: --threads (PLANTSTORE_THREADS) must be 1: ${reason}.\n`,
  })
})

test('serve with several threads is refused on PostgreSQL', async () => {
  const flags = ['serve', '--database', 'postgres://me@127.0.0.1:1/none', '--threads', '2']

  expect(await runPlantstore(flags)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('PostgreSQL') })
})

test('serve takes --threads 1 where only one is possible', async () => {
  await using service = await serveDatabase(['--rate-limit', '10/s', '--threads', '1'])

  expect((await service.server.request('GET', '/healthz')).status).toBe(200)
})
