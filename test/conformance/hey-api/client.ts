/** What the client by hey-api makes of the service: `client.ts URL TOKEN ID…` prints each answer as it was decoded. */
import { createClient } from '../../../dist/conformance/hey-api/client/index.ts'
import { createPlant, deletePlant, listPlants } from '../../../dist/conformance/hey-api/sdk.gen.ts'

declare global {
  interface JSON {
    rawJSON(text: string): object
  }
}

type Decoded = { data?: unknown; error?: unknown; response?: Response }

const [url = '', token = '', ...texts] = process.argv.slice(2)
const ids = texts.map(BigInt)
/** The serializer of hey-api writes a bigint as a string. The service refuses a string as `id`. */
const bodySerializer = (body: unknown) =>
  JSON.stringify(body, (_, value) => (typeof value === 'bigint' ? JSON.rawJSON(value.toString()) : value))
const clientOf = (baseUrl: string, auth: string) => createClient({ baseUrl, auth, bodySerializer })
const client = clientOf(url, token)

const said = ({ data, error, response }: Decoded) => {
  const link = response?.headers.get('link')
  return {
    status: response?.status,
    ...(response?.ok && response.status !== 204 && { data }),
    ...(error !== undefined && { error }),
    ...(link && { link }),
  }
}
const create = async (id: bigint) =>
  said(await createPlant({ client, body: { id, name: `Plant ${id}`, tag: 'evergreen' } }))
const remove = async (id: bigint) => said(await deletePlant({ client, path: { id } }))
/** Sends a request that the client's own validator refuses to send. */
const unchecked = { requestValidator: async () => {} }

const { response } = await createPlant({ client, body: { id: 1n, name: 'a\0b' } })
if (response !== undefined) throw new Error('the client sent a name that the pattern excludes')

const created = []
for (const id of ids) created.push(await create(id))
const first = ids[0] ?? 0n
console.log(
  JSON.stringify({
    created,
    again: await create(first),
    listed: said(await listPlants({ client })),
    page: said(await listPlants({ client, query: { limit: 1, after: first } })),
    refused: said(await listPlants({ client, query: { limit: -1 }, ...unchecked })),
    deleted: await remove(first),
    deletedAgain: await remove(first),
    stranger: said(await listPlants({ client: clientOf(url, 'nobody') })),
    elsewhere: said(await listPlants({ client: clientOf(`${url}/elsewhere`, token) })),
  }),
)
