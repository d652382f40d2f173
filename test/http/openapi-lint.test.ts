import { expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { openApiDocument } from '../../src/http/docs/document.ts'
import { makeFolder } from '../support/folder.ts'
import { runProgram } from '../support/program.ts'

const PROJECT = resolve(import.meta.dir, '../..')
/** Keeps the linters from asking for newer versions and from sending telemetry. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', CI: 'true' }

/** All rules that Redocly recommends, and all of Spectral for OpenAPI, hints included. Each makes the linter fail. */
const LINTERS = [
  { name: 'Redocly', rules: 'extends:\n  - recommended-strict\n', command: ['redocly', 'lint', '--config'] },
  {
    name: 'Spectral',
    rules: 'extends: ["spectral:oas"]\n',
    command: ['spectral', 'lint', '--fail-severity', 'hint', '--ruleset'],
  },
]

/** The document with a fault: an operation without its id. */
async function withFault() {
  const document = JSON.parse(JSON.stringify(await openApiDocument(undefined)))
  delete document.paths['/plants'].get.operationId
  return document
}

// pages.test.ts proves that the executable serves the same document.
test.each(LINTERS)(
  '$name has no remark about the document, with or without a public URL, and finds a fault',
  async ({ rules, command }) => {
    using folder = makeFolder()
    const write = async (name: string, content: string | object) => {
      const path = join(folder.path, name)
      await Bun.write(path, typeof content === 'string' ? content : JSON.stringify(content))
      return path
    }
    const config = await write('rules.yaml', rules)
    // Never fetches a program.
    const lint = async (...documents: readonly string[]) => {
      const args = ['x', '--no-install', '--bun', ...command, config, ...documents]
      const env = { ...process.env, ...QUIET }
      const { stdout, stderr, exitCode } = await runProgram([process.execPath, ...args], { cwd: PROJECT, env })
      return { exitCode, output: stdout + stderr }
    }
    const plain = await write('plain.json', await openApiDocument(undefined))
    const named = await write('public.json', await openApiDocument('https://plants.example.org/prefix'))
    const fault = await write('fault.json', await withFault())

    expect(await lint(plain, named)).toMatchObject({ exitCode: 0 })
    expect(await lint(fault)).toEqual({ exitCode: 1, output: expect.stringContaining('operation-operationId') })
  },
)
