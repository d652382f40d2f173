import { describe, expect, test } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../src/http/docs/docs.ts'
import { type Answer, startService } from './support/service.ts'
import { SQLITE_TRANSPORTS, TRANSPORTS } from './support/transports.ts'

const { paths, components } = await openApiDocument(undefined)
/** The operations by their ids. */
const OPERATIONS = new Map(
  Object.values(paths)
    .flatMap((item) => Object.values(item ?? {}) as OpenAPIV3.OperationObject[])
    .map((operation) => [operation.operationId, operation]),
)
const HEADERS = (components?.headers ?? {}) as Record<string, OpenAPIV3.HeaderObject>

test.each(SQLITE_TRANSPORTS)(
  'the example of NewPlant is accepted, and that of Plant is its answer, $name',
  async (transport) => {
    const { NewPlant, Plant } = (components?.schemas ?? {}) as Record<string, OpenAPIV3.SchemaObject>
    await using service = await startService(transport)

    expect(await service.create(NewPlant?.example)).toMatchObject({ status: 200, body: Plant?.example })
  },
)

describe.each(TRANSPORTS)('the document and the answers, $name', (transport) => {
  test('agree on status, headers, error codes and whether there is a body', async () => {
    await using service = await startService(transport, { maxBodyBytes: 100 })
    const { text: reader } = await service.createToken({ scope: 'read' })
    await service.create({ id: 1, name: 'Fern' })
    await service.create({ id: 2, name: 'Ivy' })
    const list = await service.list('?limit=1')
    const known = { headers: { 'if-none-match': list.headers.get('etag') ?? '' } }
    const large = ' '.repeat(101)
    await using limited = await startService(transport, { rateLimit: { requests: 1, periodMs: 3_600_000, burst: 0 } })
    await limited.list()
    const answers: readonly [operationId: string, answer: Answer][] = [
      ['createPlant', await service.create({ id: 3, name: 'Moss', tag: 'small' })],
      ['createPlant', await service.create('{')],
      ['createPlant', await service.create({ id: 3 })],
      ['createPlant', await service.create({ id: 1, name: 'Ivy' })],
      ['createPlant', await service.create({ id: 4, name: 'Ivy' }, { token: null })],
      ['createPlant', await service.create({ id: 4, name: 'Ivy' }, { token: 'nobody' })],
      ['createPlant', await service.create({ id: 4, name: 'Ivy' }, { token: reader })],
      ['createPlant', await service.create(large)],
      ['createPlant', await service.create('{}', { headers: { 'content-type': 'text/plain' } })],
      ['createPlant', await service.create('{}', { headers: { 'content-encoding': 'gzip' } })],
      ['listPlants', await service.list()],
      ['listPlants', list],
      ['listPlants', await service.list('?limit=5')],
      ['listPlants', await service.list('?limit=1', known)],
      ['listPlants', await service.list('?limit=x')],
      ['listPlants', await service.list('', { token: null })],
      ['listPlants', await service.list('', { headers: { host: 'x, y' } })],
      ['deletePlant', await service.delete(1)],
      ['deletePlant', await service.delete(1)],
      ['deletePlant', await service.delete('x')],
      ['deletePlant', await service.delete(1, { token: reader })],
      ['deletePlant', await service.delete(1, { token: 'nobody' })],
      ['createPlant', await limited.create({ id: 1, name: 'Fern' })],
      ['listPlants', await limited.list()],
      ['deletePlant', await limited.delete(1)],
    ]

    for (const [operationId, answer] of answers) {
      expect({ operationId, ...described(operationId, answer) }).toEqual({ operationId, missing: [], undescribed: [] })
    }
  })
})

/** The differences between an answer and the document. */
function described(operationId: string, { status, headers, text, body }: Answer) {
  const { responses } = OPERATIONS.get(operationId) ?? {}
  const response = responses?.[status] as OpenAPIV3.ResponseObject | undefined
  const said = Object.entries(response?.headers ?? {}) as [string, OpenAPIV3.ReferenceObject][]
  const isRequired = ({ $ref }: OpenAPIV3.ReferenceObject) => HEADERS[$ref.split('/').at(-1) ?? '']?.required
  const own = [...headers.keys()].filter((name) => !RUNTIME_HEADERS.includes(name))
  const errors = (response?.content?.['application/json']?.examples ?? {}) as Record<string, OpenAPIV3.ExampleObject>
  const isKnown = status < 400 || Object.values(errors).some(({ value }) => value.error === body.error)
  return {
    missing: said.filter(([name, header]) => isRequired(header) && !headers.has(name)).map(([name]) => name),
    undescribed: [
      ...own.filter((name) => !said.some(([header]) => header.toLowerCase() === name)),
      ...(response === undefined ? [status] : []),
      ...(isKnown ? [] : [body.error]),
      ...((text === '') === (response?.content === undefined) ? [] : ['body']),
    ],
  }
}

const RUNTIME_HEADERS = ['date', 'content-length', 'content-type', 'transfer-encoding', 'connection', 'keep-alive']
