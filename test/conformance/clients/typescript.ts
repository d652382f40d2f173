/** What a generated client makes of the service: `typescript.ts URL TOKEN ID…` prints each answer as it was decoded. */
import createClient from 'openapi-fetch'
import type { components, paths } from '../../../dist/conformance/plantstore.d.ts'

type Decoded = { data?: unknown; error?: components['schemas']['Error']; response: Response }

const [url = '', token = '', ...ids] = process.argv.slice(2)
const clientOf = (baseUrl: string, bearer: string) =>
  createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${bearer}` } })
const client = clientOf(url, token)
const said = ({ data, error, response: { status, headers } }: Decoded) => {
  const link = headers.get('link')
  return { status, ...(data !== undefined && { data }), ...(error && { error }), ...(link !== null && { link }) }
}

const create = async (id: string) =>
  said(await client.POST('/plants', { body: { id: Number(id), name: `Plant ${id}`, tag: 'evergreen' } }))
const remove = async (id: string) => said(await client.DELETE('/plants/{id}', { params: { path: { id: Number(id) } } }))

const created = []
for (const id of ids) created.push(await create(id))
const first = ids[0] ?? ''
console.log(
  JSON.stringify({
    created,
    again: await create(first),
    listed: said(await client.GET('/plants')),
    page: said(await client.GET('/plants', { params: { query: { limit: 1, after: Number(first) } } })),
    refused: said(await client.GET('/plants', { params: { query: { limit: -1 } } })),
    deleted: await remove(first),
    deletedAgain: await remove(first),
    stranger: said(await clientOf(url, 'nobody').GET('/plants')),
    elsewhere: said(await clientOf(`${url}/elsewhere`, token).GET('/plants')),
  }),
)
