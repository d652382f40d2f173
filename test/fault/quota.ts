import { expect } from 'bun:test'
import { codeOfAnswer } from '../cli/support/service-client.ts'
import { type DatabaseKind, SQLITE } from '../support/empty-databases.ts'
import { serve } from '../support/executable.ts'
import type { Random } from '../support/random.ts'
import { createTokenIn } from '../support/tokens.ts'
import { rounds } from './rounds.ts'
import { QUIET, type Server, THREADS } from './test-database.ts'

const CONNECTIONS = 64
const REQUESTS_OF_CONNECTION = rounds(10, 100)
const QUOTA_MAX = 100
/** The answers to creates and deletes of a user with a quota. */
const CODES = [200, 204, 40302, 40402, 40901]

/** Makes 64 connections create and delete plants of a user at three servers with a quota, and compares what is stored. */
export async function fillQuota(kind: DatabaseKind, random: Random): Promise<void> {
  await using place = await kind.make()
  const token = await createTokenIn(place.database)
  const quota = 1 + random(QUOTA_MAX)
  const flags = ['--quota-plants', String(quota), ...(kind === SQLITE ? ['--threads', `${THREADS}`] : []), ...QUIET]
  await using one = await serve(place.database, flags)
  await using other = await serve(place.database, flags)
  await using third = await serve(place.database, flags)
  const servers = [one, other, third] as const
  const codes: number[] = []
  const counts: number[] = []
  const sendSome = async () => {
    for (let count = 0; count < REQUESTS_OF_CONNECTION; count++) {
      const server = servers[random(servers.length)] ?? one
      const id = random(2 * quota)
      codes.push(random(4) === 0 ? await destroy(server, token, id) : await create(server, token, id))
      if (count % 10 === 0) counts.push(await countPlants(server, token))
    }
  }

  await Promise.all(Array.from({ length: CONNECTIONS }, sendSome))

  expect(codes.filter((code) => !CODES.includes(code))).toEqual([])
  expect(counts.filter((count) => count > quota)).toEqual([])
  const stored = codes.filter((code) => code === 200).length - codes.filter((code) => code === 204).length
  expect(await countPlants(one, token)).toBe(stored)
  for (let id = 0; id <= 2 * quota; id++) await create(other, token, id)
  expect([await create(third, token, -1), await countPlants(one, token)]).toEqual([40302, quota])
  for (const server of servers) expect([await server.end(), server.stderr()]).toEqual([0, ''])
}

const create = (server: Server, token: string, id: number) =>
  codeOfAnswer(server.request('POST', '/plants', { token, body: { id, name: 'Fern' } }))

const destroy = (server: Server, token: string, id: number) =>
  codeOfAnswer(server.request('DELETE', `/plants/${id}`, { token }))

const countPlants = async (server: Server, token: string): Promise<number> =>
  JSON.parse(await (await server.request('GET', '/plants', { token })).text()).length
