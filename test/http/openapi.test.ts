import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { OpenAPIV3 } from 'openapi-types'
import { OPTIONS } from '../../src/config.ts'
import { FIELDS_IN_WORDS } from '../../src/domain/plant.ts'
import { ERRORS } from '../../src/http/answers.ts'
import { routes } from '../../src/http/app.ts'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { makeParts } from '../../src/http/parts.ts'
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
  test('has the name, version and licence of the specification, and asks for a bearer token everywhere', () => {
    const { openapi, info, security, components } = DOCUMENT

    expect(openapi).toMatch(/^3\.0\.\d$/)
    expect(info).toMatchObject({ title: 'Plant Store', version: '1.0.0', license: { name: 'MIT' } })
    expect(security).toEqual([{ bearerAuth: [] }])
    expect(components?.securitySchemes).toMatchObject({ bearerAuth: { type: 'http', scheme: 'bearer' } })
    for (const { operation } of OPERATIONS) expect(operation.security).toBeUndefined()
  })

  test('has exactly the operations, parameters, bodies, answers and error codes of the contract', () => {
    const table = OPERATIONS.map(({ method, path, operation }) => {
      const parameters = (operation.parameters ?? []) as OpenAPIV3.ParameterObject[]
      const responses = Object.entries(operation.responses as Record<string, OpenAPIV3.ResponseObject>)
      expect(operation.summary).toMatch(/\w/)
      for (const [, { content }] of responses)
        expect(['', 'application/json']).toContain(Object.keys(content ?? {}).join())
      return {
        operation: `${operation.operationId}: ${method} ${path}`,
        headers: parameters.filter(({ in: place }) => place === 'header').map(({ name }) => name),
        parameters: parameters
          .filter(({ in: place }) => place !== 'header')
          .map(({ in: place, name, required = false, schema }) => [place, name, required, withoutExample(schema)]),
        requestBody: operation.requestBody,
        successes: responses
          .filter(([status]) => Number(status) < 400)
          .map(([status, { content }]) => [status, withoutExample(content?.['application/json']?.schema)]),
        errors: responses.flatMap(([status, response]) => codesOf(status, response)),
      }
    })

    const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
    const int64 = { type: 'integer', format: 'int64' }
    const limit = { type: 'integer', format: 'int32', minimum: 0, maximum: 2147483647 }
    const include = ['query', 'include', false, { type: 'string', enum: ['id'] }]
    const newPlant = {
      description: 'The plant to store.',
      required: true,
      content: { 'application/json': { schema: ref('NewPlant') } },
    }
    const common = [40005, 40101, 40102, 42901, 50000, 50301, 50302, 50303, 'default']
    expect(table).toEqual([
      {
        operation: 'listPlants: GET /plants',
        headers: ['If-None-Match'],
        parameters: [['query', 'limit', false, limit], ['query', 'after', false, int64], include],
        requestBody: undefined,
        successes: [
          ['200', { type: 'array', items: ref('ListedPlant') }],
          ['304', undefined],
        ],
        errors: expect.arrayContaining([...common, 40003]),
      },
      {
        operation: 'createPlant: POST /plants',
        headers: [],
        parameters: [],
        requestBody: newPlant,
        successes: [['200', ref('Plant')]],
        errors: expect.arrayContaining([...common, 40001, 40002, 40301, 40302, 40901, 41301, 41501, 41502]),
      },
      {
        operation: 'getPlant: GET /plants/{id}',
        headers: ['If-None-Match'],
        parameters: [['path', 'id', true, int64], include],
        requestBody: undefined,
        successes: [
          ['200', ref('ListedPlant')],
          ['304', undefined],
        ],
        errors: expect.arrayContaining([...common, 40003, 40004, 40402]),
      },
      {
        operation: 'deletePlant: DELETE /plants/{id}',
        headers: ['If-Match', 'If-None-Match'],
        parameters: [['path', 'id', true, int64]],
        requestBody: undefined,
        successes: [['204', undefined]],
        errors: expect.arrayContaining([...common, 40004, 40301, 40402, 41201]),
      },
    ])
    expect(table.map(({ errors }) => errors.length)).toEqual([10, 17, 12, 13])
  })

  test('has the schemas of the specification, and says in words that texts hold no unpaired surrogate', () => {
    // Not the character itself: generators write the pattern into source files.
    const pattern = String.raw`^[^\x00]*$`
    const name = { type: 'string', description: 'The name of the plant', pattern }
    const tag = { type: 'string', description: 'Tag that specifies the type of plant', pattern }
    const range = 'a whole number from -9223372036854775808 to 9223372036854775807'
    const description = `Identification number of the plant. The client chooses it: ${range}. Beyond 2^53 a double rounds it: use an integer of 64 bits.`
    const id = { type: 'integer', format: 'int64', description }
    const fields = Object.entries(SCHEMAS).map(([schema, { properties }]) => [schema, Object.keys(properties ?? {})])

    expect(Object.fromEntries(fields)).toEqual({
      Plant: ['name', 'tag'],
      NewPlant: ['id', 'name', 'tag'],
      Error: ['error', 'message'],
      ListedPlant: [],
    })
    expect(SCHEMAS.ListedPlant?.allOf).toMatchObject([
      { $ref: '#/components/schemas/Plant' },
      { type: 'object', properties: { id: { type: 'integer', format: 'int64' } } },
    ])
    expect(SCHEMAS.ListedPlant?.allOf?.[1]).not.toHaveProperty('required')
    expect(SCHEMAS).toMatchObject({
      Plant: { type: 'object', required: ['name'], properties: { name, tag } },
      NewPlant: {
        type: 'object',
        required: ['id', 'name'],
        properties: { id, name, tag },
        description: expect.stringContaining('unpaired surrogate'),
      },
      Error: {
        type: 'object',
        required: ['error', 'message'],
        properties: { error: { type: 'integer', format: 'int32' }, message: { type: 'string' } },
      },
    })
    // A pattern with surrogates would break validators.
    expect(new Set(JSON.stringify(DOCUMENT).match(/"pattern":"[^"]*"/g)).size).toBe(1)
  })

  test('says that a list ends at 8 MiB, and that Link leads on', () => {
    const limit = 'longer than 8 MiB, but holds at least one plant; then `Link` leads on.'

    expect(JSON.stringify(DOCUMENT.paths['/plants']?.get?.parameters)).toContain(limit)
  })

  test.each([
    ['listPlants', ['at most 8 MiB unless its only plant is longer', 'except with `limit=0`', 'at most once']],
    ['listPlants', ['without a cap is streamed, and evaluates no precondition', '`If-None-Match` compares weakly']],
    ['listPlants', ['It is no snapshot', 'ends without the last chunk: an incomplete body is a failure']],
    ['createPlant', ['the plant is on disk', 'Preconditions are not evaluated']],
    ['createPlant', ['If a property is given twice, the last one counts']],
    ['getPlant', [`only on ${FIELDS_IN_WORDS}`, '`If-None-Match` compares weakly']],
    ['getPlant', ['percent-decoded once', 'at most once']],
    ['deletePlant', [`only while it has the same ${FIELDS_IN_WORDS}`, 'the deletion is on disk']],
    ['deletePlant', ['`If-Match` compares strongly, `If-None-Match` weakly, and `*`']],
    ['deletePlant', ['percent-decoded once', 'the answer is 404, whatever the preconditions say']],
  ])('says of %s what no schema can say: %j', (operationId, said) => {
    const described = OPERATIONS.find(({ operation }) => operation.operationId === operationId)?.operation.description

    for (const words of said) expect(described).toContain(words)
  })

  test('says which refusals of the store leave the outcome of a write unknown', () => {
    const { store_full, store_failed, store_busy, plant_invalid } = ERRORS

    for (const { when } of [store_full, store_busy]) expect(when).toEndWith('; nothing was and nothing will be stored')
    expect(store_failed.when).toContain('on a write the outcome can be unknown')
    expect(plant_invalid.when).toContain('U+0000 or an unpaired surrogate')
  })

  test('shows the error that everyone meets first, and says limits in numbers, not in names of options', () => {
    const refused = DOCUMENT.paths['/plants']?.post?.responses[400] as OpenAPIV3.ResponseObject | undefined
    const flags = Object.values(OPTIONS).flatMap(({ envVar, long }) => (envVar === undefined ? [] : [long]))

    expect(Object.keys(refused?.content?.['application/json']?.examples ?? {})[0]).toBe('plant_invalid')
    expect(ERRORS.body_too_large.when).toContain(OPTIONS.maxBody.defaultValueDescription?.replace('KiB', ' KiB') ?? '')
    expect(flags.filter((flag) => JSON.stringify(DOCUMENT).includes(`${flag}`))).toEqual([])
  })

  test('says "unexpected error" of 400, and of other errors only when each code is the answer', () => {
    const described = OPERATIONS.flatMap(({ operation: { operationId, responses } }) =>
      (Object.entries(responses) as [string, OpenAPIV3.ResponseObject][]).flatMap(([status, { description }]) =>
        Number(status) < 400 || status === 'default' ? [] : [{ at: `${operationId} ${status}`, description }],
      ),
    )

    const wrong = described.filter(({ at, description }) => {
      const words = at.endsWith('400') ? 'An unexpected error in the request:\n\n' : ''
      return !new RegExp(`^${words}(?:- )?[45]\\d{4}: `).test(description)
    })
    expect(wrong).toEqual([])
  })

  test('has every error code with its meaning', () => {
    const { description } = SCHEMAS.Error ?? {}

    for (const { code, when } of Object.values(ERRORS)) expect(description).toContain(`| ${code} | ${when} |`)
  })

  test.each([
    ['getPlant', 'GET'],
    ['deletePlant', 'DELETE'],
  ])('links a created plant to %s', (operationId, method) => {
    const created = DOCUMENT.paths['/plants']?.post?.responses[200] as OpenAPIV3.ResponseObject

    expect(created.links?.[operationId]).toEqual({ operationId, parameters: { id: '$request.body#/id' } })
    const target = OPERATIONS.find(({ operation }) => operation.operationId === operationId)
    expect(target).toMatchObject({ method, path: '/plants/{id}' })
    expect(target?.operation.parameters).toContainEqual(expect.objectContaining({ name: 'id', in: 'path' }))
  })
})

const withoutExample = (described: object | undefined) =>
  described && Object.fromEntries(Object.entries(described).filter(([name]) => name !== 'example'))

/** The error codes of an answer, or `default`. Each is an `Error`. */
function codesOf(status: string, response: OpenAPIV3.ReferenceObject | OpenAPIV3.ResponseObject) {
  if (Number(status) < 400) return []
  const { content } = response as OpenAPIV3.ResponseObject
  expect(content).toMatchObject({ 'application/json': { schema: { $ref: '#/components/schemas/Error' } } })
  if (status === 'default') return [status]
  const codes = Object.values(content?.['application/json']?.examples ?? {}).map((example) =>
    'value' in example ? example.value.error : undefined,
  )
  expect(codes.map((code) => Math.floor(code / 100))).toEqual(codes.map(() => Number(status)))
  return codes
}

test('the routes are those of the document, and the pages and probes that need no token', async () => {
  using folder = makeFolder()
  const store = await openStore(join(folder.path, 'plantstore.db'), () => {})
  const options = appOptions({ store })
  const { routes: all } = routes(makeParts(options))
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

    let described = 0
    for (const [name, method, path, options] of all) {
      if (operationOf(method, path) === undefined) continue
      described++
      expectDescribed(method, path, await service.request(method, path, options), name)
    }
    expect(described).toBeGreaterThan(20)
  },
)
