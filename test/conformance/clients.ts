import { join } from 'node:path'
import { HERE, PYTHON_ENV, packaged, python, runWell, SCRATCH } from './tools.ts'

/** A client generated from the document, and the int64 values that its language can represent. */
export interface GeneratedClient {
  readonly name: string
  readonly ids: readonly bigint[]
  /** One of them that the client also reads exactly, with `include=id`. */
  readonly readId: bigint
  /** Generates the client. Rejects if the generator warns or the client does not compile. */
  generate(document: string): Promise<void>
  /** Creates, gets, lists and deletes plants. Returns each answer as the client decoded it. */
  use(url: string, token: string): Promise<unknown>
}

const JAVASCRIPT_IDS = [-9007199254740991n, -1n, 0n, 9007199254740991n]
const INT64_IDS = [-9223372036854775808n, -1n, 0n, 9007199254740993n, 9223372036854775807n]

const typescript: GeneratedClient = {
  name: 'openapi-typescript with openapi-fetch',
  ids: JAVASCRIPT_IDS,
  readId: 9007199254740991n,
  async generate(document) {
    await runWell([...packaged('openapi-typescript'), document, '--output', join(SCRATCH, 'plantstore.d.ts')])
    await runWell([...packaged('tsc'), '--project', HERE])
  },
  use: async (url, token) =>
    JSON.parse(
      await runWell([
        process.execPath,
        join(HERE, 'clients/typescript.ts'),
        url,
        token,
        '9007199254740991',
        ...texts(JAVASCRIPT_IDS),
      ]),
    ),
}

const pythonClient: GeneratedClient = {
  name: 'openapi-python-client',
  ids: INT64_IDS,
  readId: 9223372036854775807n,
  async generate(document) {
    const output = ['--meta', 'none', '--output-path', join(SCRATCH, 'plantstore_client'), '--overwrite']
    const command = [python('openapi-python-client'), 'generate', '--path', document, '--fail-on-warning', ...output]
    await runWell(command, { env: PYTHON_ENV })
  },
  use: async (url, token) =>
    JSON.parse(
      await runWell(
        [python('python'), join(HERE, 'clients/python.py'), url, token, '9223372036854775807', ...texts(INT64_IDS)],
        {
          env: { PYTHONPATH: SCRATCH },
        },
      ),
    ),
}

/** This client also validates every request and answer. */
export const heyApi: GeneratedClient = {
  name: 'hey-api with zod',
  ids: INT64_IDS,
  // It parses answers as JavaScript does: of the ids beyond 2^53 it reads this power of two exactly.
  readId: -9223372036854775808n,
  async generate(document) {
    const folder = join(HERE, 'hey-api')
    await runWell([process.execPath, join(folder, 'generate.ts'), document, join(SCRATCH, 'hey-api')])
    await runWell([...packaged('tsc'), '--project', folder])
  },
  use: async (url, token) =>
    JSON.parse(
      await runWell([
        process.execPath,
        join(HERE, 'hey-api/client.ts'),
        url,
        token,
        '-9223372036854775808',
        ...texts(INT64_IDS),
      ]),
    ),
}

export const CLIENTS: readonly GeneratedClient[] = [typescript, heyApi, pythonClient]

const texts = (ids: readonly bigint[]) => ids.map(String)
