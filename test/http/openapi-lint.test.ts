import { describe, expect, test } from 'bun:test'
import { basename, join, resolve } from 'node:path'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'

const PROJECT = resolve(import.meta.dir, '../..')
/** Keeps the linters from asking for newer versions and from sending telemetry. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' }

/** A broken rule. */
interface Finding {
  readonly document: string
  readonly rule: string
}

/** Runs a linter over documents, with a folder of its own. */
type Lint = (folder: string, documents: readonly string[]) => Promise<readonly Finding[]>

/** Runs a program of node_modules. It never fetches one. */
async function runTool(...args: readonly string[]) {
  return runProgram([process.execPath, 'x', '--no-install', '--bun', ...args], {
    cwd: PROJECT,
    env: { ...process.env, ...QUIET },
  })
}

/** Runs all rules that Redocly recommends. It prints one report for each document, so each document is a run. */
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

/** Runs all rules of Spectral for OpenAPI, hints included. */
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

// pages.test.ts proves that the executable serves the same document.
describe.skipIf(EXECUTABLE !== undefined).each([
  { name: 'Redocly', lint: redocly },
  { name: 'Spectral', lint: spectral },
])('$name', ({ lint }) => {
  test('has no remark about the document, with or without a public URL, and finds a fault', async () => {
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
