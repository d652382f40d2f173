import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { program, type Requirement } from '../support/requirement.ts'
import { GO, HERE, PYTHON_ENV, packaged, python, runWell, SCRATCH } from './tools.ts'

/** The int64 values that a client can represent. */
interface Ids {
  readonly ids: readonly bigint[]
  /** One of them that the client also reads exactly, with `include=id`. */
  readonly readId: bigint
}

/** A client generated from the document. */
export interface GeneratedClient extends Ids {
  readonly name: string
  /** What the generator needs beyond the installed packages. */
  readonly needs: readonly Requirement[]
  /** Generates the client. Rejects if the generator fails or the client does not compile. */
  generate(document: string): Promise<void>
  /** Creates, gets, lists, changes and deletes plants. Returns each answer as the client decoded it. */
  use(url: string, token: string): Promise<unknown>
}

const JAVASCRIPT_IDS: Ids = { ids: [-9007199254740991n, -1n, 0n, 9007199254740991n], readId: 9007199254740991n }
const INT64_IDS: Ids = {
  ids: [-9223372036854775808n, -1n, 0n, 9007199254740993n, 9223372036854775807n],
  readId: 9223372036854775807n,
}
/** JavaScript parses answers: of the ids beyond 2^53 it reads this power of two exactly. */
const BIGINT_IDS: Ids = { ...INT64_IDS, readId: -9223372036854775808n }

const OPENAPI_GENERATOR = 'openapi-generator-cli-7.23.0.jar'

/** Runs a program that uses a client and prints each decoded answer. */
const usedBy =
  (program: readonly string[], { ids, readId }: Ids) =>
  async (url: string, token: string): Promise<unknown> => {
    const command = [...program, url, token, String(readId), ...ids.map(String)]
    return JSON.parse(await runWell(command, { env: { PYTHONPATH: SCRATCH } }))
  }

const typescript: GeneratedClient = {
  name: 'openapi-typescript with openapi-fetch',
  needs: [],
  ...JAVASCRIPT_IDS,
  async generate(document) {
    await runWell([...packaged('openapi-typescript'), document, '--output', join(SCRATCH, 'plantstore.d.ts')])
    await runWell([...packaged('tsc'), '--project', HERE])
  },
  use: usedBy([process.execPath, join(HERE, 'clients/typescript.ts')], JAVASCRIPT_IDS),
}

const pythonClient: GeneratedClient = {
  name: 'openapi-python-client',
  needs: [],
  ...INT64_IDS,
  async generate(document) {
    const output = ['--meta', 'none', '--output-path', join(SCRATCH, 'plantstore_client'), '--overwrite']
    const command = [python('openapi-python-client'), 'generate', '--path', document, '--fail-on-warning', ...output]
    await runWell(command, { env: PYTHON_ENV })
  },
  use: usedBy([python('python'), join(HERE, 'clients/python.py')], INT64_IDS),
}

/** This client validates each plant that it sends. */
const openapiGenerator: GeneratedClient = {
  name: 'openapi-generator for Python',
  needs: ['java', 'mvn'].map(program),
  ...INT64_IDS,
  async generate(document) {
    const jar = join(SCRATCH, OPENAPI_GENERATOR)
    if (!existsSync(jar)) await copyJar('org.openapitools:openapi-generator-cli:7.23.0')
    const names = ['--package-name', 'plantstore_openapi', '--additional-properties', 'generateSourceCodeOnly=true']
    await runWell(['java', '-jar', jar, 'generate', '-i', document, '-g', 'python', '-o', SCRATCH, ...names])
  },
  use: usedBy([python('python'), join(HERE, 'clients/openapi_generator.py')], INT64_IDS),
}

/** Fetches the jar of an artifact of Maven, without those that it depends on, into the scratch folder. */
async function copyJar(artifact: string): Promise<void> {
  const goal = 'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy'
  await runWell(['mvn', '--batch-mode', '--strict-checksums', goal, `-Dartifact=${artifact}`, '-DoutputDirectory=.'])
}

/** This client also validates every request and answer. */
const heyApi: GeneratedClient = {
  name: 'hey-api with zod',
  needs: [],
  ...BIGINT_IDS,
  async generate(document) {
    const folder = join(HERE, 'hey-api')
    await runWell([process.execPath, join(folder, 'generate.ts'), document, join(SCRATCH, 'hey-api')])
    await runWell([...packaged('tsc'), '--project', folder])
  },
  use: usedBy([process.execPath, join(HERE, 'hey-api/client.ts')], BIGINT_IDS),
}

const GO_FOLDER = join(SCRATCH, 'oapi-codegen')

/** This client is compiled into the program that uses it. */
const oapiCodegen: GeneratedClient = {
  name: 'oapi-codegen for Go',
  needs: [GO],
  ...INT64_IDS,
  async generate(document) {
    cpSync(join(HERE, 'oapi-codegen'), GO_FOLDER, { recursive: true })
    mkdirSync(join(GO_FOLDER, 'plants'), { recursive: true })
    const flags = ['-generate', 'types,client', '-package', 'plants', '-o', 'plants/plants.gen.go']
    await runWell(['go', 'tool', 'oapi-codegen', ...flags, document], { cwd: GO_FOLDER })
    await runWell(['go', 'build', '-o', 'client', '.'], { cwd: GO_FOLDER })
  },
  use: usedBy([join(GO_FOLDER, 'client')], INT64_IDS),
}

export const CLIENTS: readonly GeneratedClient[] = [typescript, heyApi, pythonClient, openapiGenerator, oapiCodegen]
