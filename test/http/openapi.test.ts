import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { OpenAPIV3 } from 'openapi-types'
import { OPTIONS } from '../../src/config.ts'
import { ERRORS } from '../../src/http/answers.ts'
import { createServices, routes } from '../../src/http/app.ts'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { openStore } from '../../src/store/open.ts'
import { appOptions } from '../support/app.ts'
import { makeFolder } from '../support/folder.ts'
import { startWithCases } from './support/cases.ts'
import { expectDescribed, operationOf } from './support/described.ts'
import { startService } from './support/service.ts'
import { SOCKET_TRANSPORTS } from './support/transports.ts'

const DOCUMENT: OpenAPIV3.Document = await openApiDocument(undefined)
const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  Object.entries(item ?? {}).map(([method, operation]) => ({
    method: method.toUpperCase(),
    path,
    operation: operation as OpenAPIV3.OperationObject,
  })),
)
const SCHEMAS = (DOCUMENT.components?.schemas ?? {}) as Record<string, OpenAPIV3.SchemaObject>

describe('the document', () => {
  test('has what the specification gives', () => {
    const { info, security, components } = DOCUMENT
    const id = {
      type: 'integer',
      format: 'int64',
      description: expect.stringMatching(/^Identification number of the plant\b/),
    }
    const name = { type: 'string', description: 'The name of the plant' }
    const tag = { type: 'string', description: 'Tag that specifies the type of plant' }

    expect(info).toMatchObject({ title: 'Plant Store', version: '1.0.0', license: { name: 'MIT' } })
    expect(security).toEqual([{ bearerAuth: [] }])
    expect(components?.securitySchemes).toMatchObject({ bearerAuth: { type: 'http', scheme: 'bearer' } })
    expect(SCHEMAS).toMatchObject({
      Plant: { type: 'object', required: ['name'], properties: { name, tag } },
      NewPlant: { type: 'object', required: ['id', 'name'], properties: { id, name, tag } },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: { error: { type: 'integer', format: 'int32' }, message: { type: 'string' } },
      },
    })
    for (const { operation } of OPERATIONS) {
      expect(operation.security).toBeUndefined()
      expect(operation.responses).toHaveProperty('default')
    }
    expect(DOCUMENT.paths['/plants']?.post?.responses[400]).toMatchObject({
      description: expect.stringMatching(/unexpected error/),
    })
  })

  test('says limits in numbers, not in names of options', () => {
    const flags = Object.values(OPTIONS).flatMap(({ envVar, long }) => (envVar === undefined ? [] : [long]))

    expect(ERRORS.body_too_large.when).toContain(OPTIONS.maxBody.defaultValueDescription?.replace('KiB', ' KiB') ?? '')
    expect(flags.filter((flag) => JSON.stringify(DOCUMENT).includes(`${flag}`))).toEqual([])
  })
})

test('the routes are those of the document, and the pages and probes that need no token', async () => {
  using folder = makeFolder()
  const store = await openStore(join(folder.path, 'plantstore.db'), () => {})
  const options = appOptions({ store })
  const { routes: all } = routes(createServices(options))
  await store.close()
  const open = ['/', '/assets/{name}', '/docs', '/healthz', '/openapi.json', '/readyz'].map((path) => `GET ${path}`)

  // Every path has these three besides: a HEAD for its GET, an OPTIONS, and the 405 for all other methods.
  const own = all.filter(({ method }) => !['HEAD', 'OPTIONS', 'ALL'].includes(method))
  expect(own.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`).sort()).toEqual(
    [...OPERATIONS.map(({ method, path }) => `${method} ${path}`), ...open].sort(),
  )
})

test.each(SOCKET_TRANSPORTS)(
  'the example of NewPlant is accepted, and that of Plant is its answer, $name',
  async (transport) => {
    const { NewPlant, Plant } = SCHEMAS
    await using service = await startService(transport)

    expect(await service.create(NewPlant?.example)).toMatchObject({ status: 200, body: Plant?.example })
  },
)

test.each(SOCKET_TRANSPORTS)(
  'the document and the answers agree on status, headers, codes and bodies, $name',
  async (transport) => {
    const { service, all } = await startWithCases(transport)
    await using _service = service

    const seen = new Set<string>()
    for (const [name, method, path, options] of all) {
      const operation = operationOf(method, path)
      if (operation === undefined) continue
      const answer = await service.request(method, path, options)
      expectDescribed(method, path, answer, name)
      seen.add(`${operation.operationId} ${answer.status}`)
    }
    // 429 and what follows need more than a request.
    const described = OPERATIONS.flatMap(({ operation: { operationId, responses } }) =>
      Object.keys(responses).flatMap((status) => (Number(status) < 429 ? [`${operationId} ${status}`] : [])),
    )
    expect(described.filter((answer) => !seen.has(answer))).toEqual([])
  },
)
