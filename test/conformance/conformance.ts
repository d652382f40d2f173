/** Checks the executable with tools of others: see docs/explanation/tested.md. `bun run conformance` builds the executable and runs this. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { OpenAPIV3 } from 'openapi-types'
import { EXECUTABLE, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { OWN_POSTGRES } from '../support/postgres-system.ts'
import { lacks } from '../support/requirement.ts'
import { createTokenIn } from '../support/tokens.ts'
import { CLIENTS, heyApi } from './clients.ts'
import { captureStatements, parseByCockroachdb } from './cockroachdb.ts'
import { GO } from './go.ts'
import { casesWith, runValidator } from './libopenapi.ts'
import { runBehindPrism } from './prism.ts'
import { runSchemathesis } from './schemathesis.ts'
import { installTools, runWell, SCRATCH } from './tools.ts'
import { runVacuum } from './vacuum.ts'

const DOCUMENT = join(SCRATCH, 'openapi.json')
/** The document with a fault: it promises plants with an `id`. */
const FAULTY = join(SCRATCH, 'faulty.json')
/** The document with a pattern that Go cannot compile. */
const UNREADABLE = join(SCRATCH, 'unreadable.json')
/** The document with `--public-url`. */
const PUBLIC = join(SCRATCH, 'public.json')

/** A statement of a migration, of a group of creates and of a copy. The tests of the PostgreSQL store send them all. */
const SENT_STATEMENTS = [
  /^\s*create table if not exists plantstore\.plants /,
  /^with gate as .* insert into plantstore\.plants .* on conflict /s,
  /^insert into plantstore\.plants .* from unnest\(/s,
]

/** The limit for downloads, builds and long tests. */
const LONG_MS = 1_800_000
setDefaultTimeout(LONG_MS)

let document: OpenAPIV3.Document
const findings: string[] = []

beforeAll(async () => {
  if (EXECUTABLE === undefined) throw new Error('Start this as: bun run conformance')
  await installTools()
  const text = await runWell([EXECUTABLE, 'openapi'])
  document = JSON.parse(text)
  await Bun.write(DOCUMENT, text)
  await Bun.write(FAULTY, JSON.stringify(withFault(document)))
  await Bun.write(UNREADABLE, text.replaceAll('\\u0000', String.raw`\\uD800`))
  await Bun.write(PUBLIC, await runWell([EXECUTABLE, 'openapi', '--public-url', 'https://plants.example.org/prefix']))
}, LONG_MS)

afterAll(() => {
  if (lacks(GO))
    findings.push('skipped, because go is missing: vacuum, libopenapi-validator and the parser of CockroachDB')
  console.log(['\nFindings:', ...findings].join('\n  '))
})

describe('Schemathesis', () => {
  test('finds no failure and has no warning', async () => {
    await using server = await startServer()

    const { seed, cases, stdout, ...found } = await runSchemathesis(`${server.url}/openapi.json`, server)

    findings.push(`Schemathesis: ${found.failures.length} failures in ${cases} cases (SCHEMATHESIS_SEED=${seed})`)
    if (found.failures.length > 0) console.log(stdout)
    expect(found).toEqual({ exitCode: 0, isWhole: true, failures: [], warnings: {} })
  })

  test('finds the fault in a document that has one', async () => {
    await using server = await startServer()

    const { failures } = await runSchemathesis(FAULTY, server, ['--max-failures', '1'])

    expect(failures).toMatchObject([{ title: 'Response violates schema' }])
  })
})

describe('Prism', () => {
  test('finds no violation in any answer to test/http', async () => {
    const { passed, failed, violations, answers } = await runBehindPrism(DOCUMENT, ['test/http'])

    const seen = new Set(answers)
    findings.push(`Prism: ${violations.length} violations in ${answers.length} answers, ${passed} tests passed`)
    expect({ failed, violations }).toEqual({ failed: [], violations: [] })
    expect(documentedRefusalsAndSuccesses().filter((answer) => !seen.has(answer))).toEqual([])
  })

  test('finds the fault in a document that has one', async () => {
    const { failed, violations } = await runBehindPrism(FAULTY, ['test/http/create.test.ts'])

    expect(failed).not.toEqual([])
    expect(violations.join()).toContain('Prism: POST /plants')
  })
})

describe.skipIf(lacks(GO) || lacks(OWN_POSTGRES))('the parser of CockroachDB', () => {
  test('takes every statement of the PostgreSQL store, one in each query', async () => {
    const statements = await captureStatements()

    expect(statements.length).toBeGreaterThan(80)
    expect(SENT_STATEMENTS.filter((pattern) => !statements.some((statement) => pattern.test(statement)))).toEqual([])
    expect(await parseByCockroachdb(statements)).toEqual([])
    findings.push(`CockroachDB 25.2: its parser takes all of ${statements.length} statements`)
  })

  test('finds a fault in a statement, and a query of two statements', async () => {
    expect(
      await parseByCockroachdb(['create table t (name text collate "C")', 'select 1', 'select 1; select 2']),
    ).toEqual([expect.stringContaining('invalid locale C'), 'select 1; select 2: 2 statements in one query'])
  })
})

describe.skipIf(lacks(GO))('vacuum', () => {
  test('finds no errors, and one warning, about the server / without --public-url', async () => {
    expect(await runVacuum(PUBLIC)).toEqual([])
    expect(await runVacuum(DOCUMENT)).toEqual([{ code: 'oas3-api-servers', at: 'servers.0.url' }])
    findings.push('vacuum: no errors, 1 warning (about the server /, without --public-url)')
  })

  test('finds the fault in a document that has one', async () => {
    expect((await runVacuum(UNREADABLE)).map(({ code }) => code)).toContain('oas3-schema')
  })
})

describe.skipIf(lacks(GO))('libopenapi-validator', () => {
  test('accepts the document, refuses what the server refuses, and finds no violation in any answer', async () => {
    await using server = await startServer()
    const cases = casesWith(server.token)

    const found = await runValidator(DOCUMENT, server.url, cases)

    expect(found.document).toEqual([])
    expect(
      found.verdicts.map(({ status, request, response }, index) => ({
        sent: cases[index]?.[0],
        status,
        isWrong: request.length > 0,
        response,
      })),
    ).toEqual(cases.map(([sent, status, isWrong]) => ({ sent, status, isWrong, response: [] })))
    findings.push(`libopenapi-validator: the document is valid, 0 violations in ${cases.length} answers`)
  })

  test('finds the fault in each document that has one', async () => {
    await using server = await startServer()
    const [first] = casesWith(server.token)

    const unreadable = await runValidator(UNREADABLE, server.url, [])
    const faulty = await runValidator(FAULTY, server.url, first === undefined ? [] : [first])

    expect(unreadable.document).not.toEqual([])
    expect(faulty.verdicts[0]?.response.join()).toContain("missing property 'id'")
  })
})

describe.each(CLIENTS)('a client generated by $name', ({ name, ids, readId, generate, use }) => {
  test('creates, gets, lists and deletes, and decodes every error', async () => {
    await using server = await startServer()

    await generate(DOCUMENT)
    const answers = await use(server.url, server.token)

    const plants = ids.map((id) => ({ name: `Plant ${id}`, tag: 'evergreen' }))
    const [first, ...others] = ids
    expect(answers).toEqual({
      created: plants.map((data) => ({ status: 200, data })),
      again: error(409, 40901),
      got: { status: 200, data: { id: Number(readId), name: `Plant ${readId}`, tag: 'evergreen' } },
      listed: { status: 200, data: plants },
      page: { status: 200, data: plants.slice(1, 2), link: `<?limit=1&after=${others[0]}>; rel="next"` },
      refused: error(400, 40003),
      deleted: { status: 204 },
      deletedAgain: error(404, 40402),
      stranger: error(401, 40102),
      // No operation has this answer, so the client decodes it by `default`.
      elsewhere: error(404, 40401),
    })
    const left = await Promise.all([first, ...others].map((id) => server.delete(id)))
    expect(left).toEqual([404, ...others.map(() => 204)])
    findings.push(`${name}: created, listed and deleted the ids ${ids.join(', ')}`)
  })
})

test('a client generated by hey-api refuses an answer that violates the document', async () => {
  await using server = await startServer()

  await heyApi.generate(FAULTY)
  const answers = await heyApi.use(server.url, server.token)

  const refused = { status: 200, error: expect.objectContaining({ name: 'ZodError' }) }
  expect(answers).toMatchObject({ created: heyApi.ids.map(() => refused), listed: refused })
})

const error = (status: number, code: number) => ({
  status,
  error: { error: code, message: expect.stringMatching(/^[A-Z`].+\.$/) },
})

/** The executable on an empty database, with a write token. */
async function startServer() {
  const folder = makeFolder()
  const database = join(folder.path, 'plantstore.db')
  const token = await createTokenIn(database)
  const server = await serve(database)
  return {
    url: server.url,
    token,
    delete: async (id = 0n) => (await server.request('DELETE', `/plants/${id}`, { token })).status,
    async [Symbol.asyncDispose]() {
      await server.kill()
      folder[Symbol.dispose]()
    },
  }
}

function withFault({ components, ...rest }: OpenAPIV3.Document): OpenAPIV3.Document {
  const { Plant, ...others } = (components?.schemas ?? {}) as Record<string, OpenAPIV3.SchemaObject>
  const properties = { ...Plant?.properties, id: { type: 'integer', format: 'int64' } } as const
  const schemas = { ...others, Plant: { ...Plant, required: ['id'], properties } }
  return { ...rest, components: { ...components, schemas } }
}

/** Every documented answer, except those of a server that fails. */
function documentedRefusalsAndSuccesses(): string[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item ?? {}).flatMap(([method, operation]) =>
      Object.keys((operation as OpenAPIV3.OperationObject).responses)
        .filter((status) => Number(status) < 500)
        .map((status) => `${method.toUpperCase()} ${path} ${status}`),
    ),
  )
}
