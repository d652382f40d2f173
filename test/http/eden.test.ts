import { expect, test } from 'bun:test'
import { treaty } from '@elysiajs/eden'
import type { App } from '../../src/http/app.ts'
import { type Service, startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

type Plants = readonly { readonly name: string; readonly tag?: string | undefined }[]

/** A client of Elysia's users, whose types are those of the routes alone. */
const clientOf = ({ port, token }: Service) =>
  treaty<App>(`http://127.0.0.1:${port}`, { headers: { authorization: `Bearer ${token}` }, parseDate: false })

test.each(SOCKET_TRANSPORTS)('a client of @elysiajs/eden has the types of the routes, $name', async (transport) => {
  await using service = await startService(transport)
  const client = clientOf(service)
  await service.create({ id: 7, name: 'Fern' })

  const listed = await client.plants.get({ query: { limit: 0 } })
  // The compiler checks these lines: a wrong type of a route fails `tsc`.
  const plants: Plants = listed.data || []
  const refused = await client.plants.get({ query: { limit: -1 } })
  const error: number | undefined = refused.error?.status === 400 ? refused.error.value.error : undefined
  const got = await client.plants({ id: '7' }).get({ query: { include: 'id' } })
  const plant: { readonly id?: bigint; readonly name: string; readonly tag?: string } | undefined =
    got.data || undefined
  const put = await client.plants({ id: '7' }).put({ name: 'Ivy' })
  const stored: { readonly name: string; readonly tag?: string } | undefined = put.data || undefined
  const isRefused = put.error?.status === 412
  const deleted = await client.plants({ id: '7' }).delete()
  const told = await client.token.get()
  const token: { readonly user: string; readonly scope: 'read' | 'write'; readonly expires?: string } | undefined =
    told.data || undefined
  // @ts-expect-error no list answers 404
  const isNotFound = refused.error?.status === 404
  // @ts-expect-error a put answers no 409
  const isConflict = put.error?.status === 409
  // @ts-expect-error a plant needs a name
  const unput = () => client.plants({ id: '7' }).put({ tag: 'indoor' })
  // @ts-expect-error a plant needs a name
  const unsent = () => client.plants.post({ id: 1n })

  expect({
    plants,
    plant: String(plant?.id),
    error,
    isNotFound,
    put: put.status,
    stored,
    isRefused,
    isConflict,
    deleted: deleted.status,
    token,
  }).toEqual({
    plants: [],
    plant: '7',
    error: 40003,
    isNotFound: false,
    put: 200,
    stored: { name: 'Ivy' },
    isRefused: false,
    isConflict: false,
    deleted: 204,
    token: { user: 'me', scope: 'write' },
  })
  expect([unsent, unput]).toBeArrayOfSize(2)
})
