import { describe, expect, test } from 'bun:test'
import { basename, join, resolve } from 'node:path'
import { openApiDocument } from '../../src/http/docs/openapi.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'

const PROJECT = resolve(import.meta.dir, '../..')
/** The linters ask nobody for newer versions and tell nobody that they ran. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' }

/** A rule that a document breaks. */
interface Finding {
  readonly document: string
  readonly rule: string
}

/** Runs a linter over documents in a folder that is its own for the time. */
type Lint = (folder: string, documents: readonly string[]) => Promise<readonly Finding[]>

/** Runs a program of node_modules in this project's version, and never one that it would have to fetch. */
async function runTool(...args: readonly string[]) {
  return runProgram([process.execPath, 'x', '--no-install', '--bun', ...args], {
    cwd: PROJECT,
    env: { ...process.env, ...QUIET },
  })
}

/** All rules that Redocly recommends, as they are. It prints a report for each document, so that each is a run. */
const redocly: Lint = async (folder, documents) => {
  const config = join(folder, 'redocly.yaml')
  await Bun.write(config, 'extends:\n  - recommended\n')
  const findings = await Promise.all(
    documents.map(async (document) => {
      const { stdout, stderr } = await runTool('redocly', 'lint', document, '--config', config, '--format', 'json')
      const { problems } = parse<{ problems: { ruleId: string }[] }>(stdout, stderr)
      return problems.map(({ ruleId }) => ({ document: basename(document), rule: ruleId }))
    }),
  )
  return findings.flat()
}

/** All rules of Spectral for OpenAPI, as they are; hints count. */
const spectral: Lint = async (folder, documents) => {
  const ruleset = join(folder, 'spectral.yaml')
  await Bun.write(ruleset, 'extends: ["spectral:oas"]\n')
  const options = ['--ruleset', ruleset, '--format', 'json', '--quiet']
  const { stdout, stderr } = await runTool('spectral', 'lint', ...documents, ...options)
  const problems = parse<{ code: string; source: string }[]>(stdout, stderr)
  return problems.map(({ code, source }) => ({ document: basename(source), rule: code }))
}

function parse<T>(stdout: string, stderr: string): T {
  try {
    return JSON.parse(stdout)
  } catch (cause) {
    throw new Error(`the linter did not run: ${stdout}${stderr}`, { cause })
  }
}

/** The document with a fault: an operation without its id. */
async function withFault() {
  const { paths, ...rest } = await openApiDocument(undefined)
  const { get, ...others } = paths['/plants'] ?? {}
  const { operationId: _, ...anonymous } = get ?? { responses: {} }
  return { ...rest, paths: { ...paths, '/plants': { ...others, get: anonymous } } }
}

// What the executable serves is the same document, which docs.test.ts proves.
describe.skipIf(EXECUTABLE !== undefined).each([
  { name: 'Redocly', lint: redocly },
  { name: 'Spectral', lint: spectral },
])('$name', ({ lint }) => {
  test('finds nothing in the document, with and without a public URL, and the fault in one that has it', async () => {
    using folder = makeFolder()
    const documents = {
      'plain.json': await openApiDocument(undefined),
      'public.json': await openApiDocument('https://plants.example.org/prefix'),
      'fault.json': await withFault(),
    }
    const paths = Object.keys(documents).map((name) => join(folder.path, name))
    await Promise.all(
      Object.values(documents).map((document, index) => Bun.write(paths[index] ?? '', JSON.stringify(document))),
    )

    expect(await lint(folder.path, paths)).toEqual([{ document: 'fault.json', rule: 'operation-operationId' }])
  })
})
