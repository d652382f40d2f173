import { expect, test } from 'bun:test'
import type { OpenAPIV3 } from 'openapi-types'
import { openApiDocument } from '../../src/http/docs/docs.ts'
import { startWithCases } from './support/cases.ts'
import { type Answer, startService } from './support/service.ts'
import { SQLITE_TRANSPORTS, TRANSPORTS } from './support/transports.ts'

const { paths, components } = await openApiDocument(undefined)
const HEADERS = (components?.headers ?? {}) as Record<string, OpenAPIV3.HeaderObject>

test.each(SQLITE_TRANSPORTS)(
  'the example of NewPlant is accepted, and that of Plant is its answer, $name',
  async (transport) => {
    const { NewPlant, Plant } = (components?.schemas ?? {}) as Record<string, OpenAPIV3.SchemaObject>
    await using service = await startService(transport)

    expect(await service.create(NewPlant?.example)).toMatchObject({ status: 200, body: Plant?.example })
  },
)

test.each(TRANSPORTS)(
  'the document and the answers agree on status, headers, codes and bodies, $name',
  async (transport) => {
    const { service, all } = await startWithCases(transport)
    await using _service = service
    const operationOf = (method: string, path: string) =>
      Object.entries(paths[path.replace(/\?.*/, '').replace(/^\/plants\/.+/, '/plants/{id}')] ?? {}).find(
        ([name]) => name === method.toLowerCase(),
      )?.[1] as OpenAPIV3.OperationObject | undefined

    let described = 0
    for (const [name, method, path, options] of all) {
      const operation = operationOf(method, path)
      if (operation === undefined) continue
      described++
      const answer = await service.request(method, path, options)
      expect({ name, ...differences(operation, answer) }).toEqual({ name, missing: [], undescribed: [] })
    }
    expect(described).toBeGreaterThan(20)
  },
)

/** The differences between an answer and the document. */
function differences({ responses }: OpenAPIV3.OperationObject, { status, headers, text, body }: Answer) {
  const response = responses[status] as OpenAPIV3.ResponseObject | undefined
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
