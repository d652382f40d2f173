import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { OpenAPIV3 } from 'openapi-types'
import { ERRORS } from '../../src/http/answers.ts'
import { makeParts, routes } from '../../src/http/app.ts'
import { openApiDocument } from '../../src/http/docs/docs.ts'
import { openStore } from '../../src/store/open.ts'
import { appOptions } from '../support/app.ts'
import { makeFolder } from '../support/folder.ts'

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

  test('has exactly the operations, parameters and statuses of the contract', () => {
    expect(
      OPERATIONS.map(({ method, path, operation }) => ({
        operation: `${operation.operationId}: ${method} ${path}`,
        parameters: (operation.parameters as OpenAPIV3.ParameterObject[] | undefined)?.map(
          ({ name, in: place, required }) => `${place} ${name}${required ? ' (required)' : ''}`,
        ),
        statuses: Object.keys(operation.responses).join(' '),
        hasSummary: operation.summary !== undefined,
      })),
    ).toEqual([
      {
        operation: 'listPlants: GET /plants',
        parameters: ['header If-None-Match', 'query limit', 'query after'],
        statuses: '200 304 400 401 429 500 503 default',
        hasSummary: true,
      },
      {
        operation: 'createPlant: POST /plants',
        parameters: [],
        statuses: '200 400 401 403 409 413 415 429 500 503 default',
        hasSummary: true,
      },
      {
        operation: 'deletePlant: DELETE /plants/{id}',
        parameters: ['path id (required)'],
        statuses: '204 400 401 403 404 429 500 503 default',
        hasSummary: true,
      },
    ])
  })

  test('has the schemas of the specification', () => {
    const shape = ({ type, required, properties }: OpenAPIV3.SchemaObject) => ({
      type,
      required,
      properties: Object.fromEntries(
        (Object.entries(properties ?? {}) as [string, OpenAPIV3.SchemaObject][]).map(([name, property]) => [
          name,
          [property.type, property.format].filter((part) => part !== undefined).join(' '),
        ]),
      ),
    })

    expect(Object.keys(SCHEMAS).sort()).toEqual(['Error', 'NewPlant', 'Plant'])
    expect(shape(SCHEMAS.NewPlant ?? {})).toEqual({
      type: 'object',
      required: ['id', 'name'],
      properties: { id: 'integer int64', name: 'string', tag: 'string' },
    })
    expect(shape(SCHEMAS.Plant ?? {})).toEqual({
      type: 'object',
      required: ['name'],
      properties: { name: 'string', tag: 'string' },
    })
    expect(shape(SCHEMAS.Error ?? {})).toEqual({
      type: 'object',
      required: ['error', 'message'],
      properties: { error: 'integer int32', message: 'string' },
    })
    expect(SCHEMAS.NewPlant?.properties).toMatchObject({
      id: { description: 'Identification number of the plant' },
      name: { description: 'The name of the plant' },
      tag: { description: 'Tag that specifies the type of plant' },
    })
  })

  test('answers every error with an Error, and any other by default', () => {
    for (const { operation } of OPERATIONS) {
      const errors = Object.entries(operation.responses).filter(
        ([status]) => status === 'default' || Number(status) >= 400,
      )
      expect(errors.map(([status]) => status)).toContain('default')
      for (const [, response] of errors) {
        expect((response as OpenAPIV3.ResponseObject).content).toMatchObject({
          'application/json': { schema: { $ref: '#/components/schemas/Error' } },
        })
      }
      expect((operation.responses[400] as OpenAPIV3.ResponseObject).description).toStartWith('unexpected error')
    }
  })

  test('says that a list ends at 8 MiB, and that Link leads on', () => {
    const limit = OPERATIONS.flatMap(({ operation }) => operation.parameters ?? []).find(
      (parameter) => 'name' in parameter && parameter.name === 'limit',
    )

    expect(limit).toMatchObject({
      description: expect.stringContaining('longer than 8 MiB, but holds at least one plant; then `Link` leads on.'),
    })
  })

  test('says for each operation which error codes it has', () => {
    const codes = Object.fromEntries(
      OPERATIONS.map(({ operation }) => [
        operation.operationId,
        Object.values(operation.responses).flatMap(codesOf).sort(),
      ]),
    )
    const common = [40005, 40101, 40102, 42901, 50000, 50302, 50303]

    expect(codes).toEqual({
      createPlant: [...common, 40001, 40002, 40301, 40901, 41301, 41501, 41502, 50301].sort(),
      listPlants: [...common, 40003].sort(),
      deletePlant: [...common, 40004, 40301, 40402, 50301].sort(),
    })
  })

  test('has every error code with its meaning', () => {
    const { description } = SCHEMAS.Error ?? {}

    for (const { code, when } of Object.values(ERRORS)) expect(description).toContain(`| ${code} | ${when} |`)
  })

  test('has one pattern for texts, and describes in words that they hold no unpaired surrogate', () => {
    const patterns = new Set(JSON.stringify(DOCUMENT).match(/"pattern":"[^"]*"/g))

    expect([...patterns]).toEqual(['"pattern":"^[^\\u0000]*$"'])
    expect(SCHEMAS.NewPlant?.properties).toMatchObject({
      name: { pattern: '^[^\u0000]*$' },
      tag: { pattern: '^[^\u0000]*$' },
    })
    expect(SCHEMAS.NewPlant?.description).toContain('unpaired surrogate')
  })

  test('links a created plant to its deletion', () => {
    const created = DOCUMENT.paths['/plants']?.post?.responses[200] as OpenAPIV3.ResponseObject
    const { operationId, parameters } = (created.links?.deletePlant ?? {}) as OpenAPIV3.LinkObject

    expect(parameters).toEqual({ id: '$request.body#/id' })
    expect(OPERATIONS.find(({ operation }) => operation.operationId === operationId)).toMatchObject({
      method: 'DELETE',
      path: '/plants/{id}',
      operation: { parameters: [{ name: 'id', in: 'path' }] },
    })
  })
})

/** The error codes among the examples of an answer. */
function codesOf(response: OpenAPIV3.ReferenceObject | OpenAPIV3.ResponseObject): number[] {
  const examples = 'content' in response ? response.content?.['application/json']?.examples : undefined
  return Object.values(examples ?? {}).flatMap((example) =>
    'value' in example && example.value.error !== undefined ? [example.value.error] : [],
  )
}

test('the routes are those of the document, and the pages and probes that need no token', async () => {
  using folder = makeFolder()
  const store = await openStore(join(folder.path, 'plantstore.db'), () => {})
  const options = appOptions({ store })
  const { routes: all } = routes(makeParts(options))
  await store.close()
  const open = ['/docs', '/docs/scalar.js', '/healthz', '/openapi.json', '/readyz'].map((path) => `GET ${path}`)

  // Every path has these three besides: a HEAD for its GET, an OPTIONS, and the 405 for all other methods.
  const own = all.filter(({ method }) => !['HEAD', 'OPTIONS', 'ALL'].includes(method))
  expect(own.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`).sort()).toEqual(
    [...OPERATIONS.map(({ method, path }) => `${method} ${path}`), ...open].sort(),
  )
})
