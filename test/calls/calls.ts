/**
 * `bun run calls`: counts the functions of src that a running server calls for each of eight requests, both threads together. Prints
 * the calls, the different functions and their files. The exit code is 1 if one of these exceeds budget.json.
 */
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SETTLED_MS } from '../../src/engine/sqlite/files/moved-files.ts'
import { runPlantstore, serve } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { addPlants } from '../support/many-plants.ts'
import { copyProject } from '../support/project-copy.ts'
import { isBusy } from '../support/slack.ts'
import { createTokenIn } from '../support/tokens.ts'
import { until } from '../support/until.ts'
import budget from './budget.json'
import { instrumentSource } from './instrument.ts'

/** The fewest calls of so many requests count, because timers add to some of them; on a busy machine of more, until one is within its budget. */
const REQUESTS = 6
const REQUESTS_MAX = 60
/** What a request adds that comes late, as on a busy machine all do: it looks for commits of others itself, or meets timers. */
const LATE: Calls = { calls: 6, functions: 4, files: 1 }
/** The server is at rest if it calls nothing for so long. */
const REST_MS = 30
/** More than a look for commits of other processes takes, and less than the time until the next one. */
const CHECK_MS = 5
const PLANTS = 100
const IS_BUSY = isBusy()

const COUNTS = ['calls', 'functions', 'files'] as const
type Calls = Readonly<Record<(typeof COUNTS)[number], number>>

using folder = makeFolder()
const database = join(folder.path, 'plantstore.db')
const log = join(folder.path, 'calls')
const project = join(folder.path, 'project')
copyProject(project)
instrumentSource(project, log, 'each call')
const command = [process.execPath, join(project, 'src/main.ts')]
const token = await createTokenIn(database)
addPlants(database, PLANTS)
await using server = await serve(database, [], { command })

/** Sends a request with a token, and expects the status. */
async function send(status: number, method: string, path: string, body?: object, text = token): Promise<void> {
  const answer = await server.request(method, path, { token: text, ...(body && { body }) })
  await answer.text()
  if (answer.status !== status) throw new Error(`${method} ${path} was answered with ${answer.status}`)
}

const size = () => statSync(log, { throwIfNoEntry: false })?.size ?? 0

async function rest(): Promise<void> {
  let before = -1
  await until(
    'the server is at rest',
    () => {
      const isAtRest = size() === before
      before = size()
      return isAtRest
    },
    { lookMs: REST_MS },
  )
}

/** Has the server look for commits of other processes, so that the next request does not have to. */
async function lookForOthers(): Promise<void> {
  await rest()
  await send(200, 'GET', '/plants?limit=20')
  await Bun.sleep(CHECK_MS)
  // Takes over what was found.
  await send(200, 'GET', '/plants?limit=20')
}

/** The calls of a request after the first one, which compiles its route and fills caches. */
async function count(
  name: keyof typeof budget,
  request: (index: number) => Promise<void>,
  prepare: typeof request = lookForOthers,
): Promise<Calls> {
  const counted: Calls[] = []
  const within = () => counted.filter((each) => isWithin(each, budget[name]))
  for (let index = 0; index <= REQUESTS || (index <= REQUESTS_MAX && within().length === 0); index++) {
    await prepare(index)
    writeFileSync(log, '')
    await request(index)
    await rest()
    const called = readFileSync(log, 'utf8').split('\n').slice(0, -1)
    const files = called.map((place) => place.split(':')[0])
    if (index > 0) counted.push({ calls: called.length, functions: new Set(called).size, files: new Set(files).size })
  }
  return (within().length > 0 ? within() : counted).reduce((least, each) => (each.calls < least.calls ? each : least))
}

const isWithin = (found: Calls, allowed: Calls): boolean =>
  COUNTS.every((name) => found[name] <= allowed[name] + (IS_BUSY ? LATE[name] : 0))

const tokens: string[] = []
const reads = {
  get: await count('get', () => send(200, 'GET', '/plants/1')),
  'list, cached': await count('list, cached', () => send(200, 'GET', '/plants?limit=20')),
  'list, not cached': await count('list, not cached', (index) => send(200, 'GET', `/plants?limit=20&after=${index}`)),
  'revoked token': await count(
    'revoked token',
    (index) => send(401, 'GET', '/plants?limit=20', undefined, tokens[index]),
    async (index = 0) => {
      tokens[index] = await createTokenIn(database)
      await send(200, 'GET', '/plants?limit=20', undefined, tokens[index])
      await runPlantstore(['token', 'revoke', String(index + 2), '--database', database])
      await lookForOthers()
    },
  ),
}
// From then on a commit looks at the folder alone, as it does at nearly all times.
await until('the folder of the database is old', () => Date.now() - statSync(folder.path).ctimeMs > SETTLED_MS)
const found: Record<keyof typeof budget, Calls> = {
  ...reads,
  create: await count('create', (index) => send(200, 'POST', '/plants', { id: -index - 1, name: 'Fern' })),
  'put, makes': await count('put, makes', (index) => send(201, 'PUT', `/plants/${-index - 100}`, { name: 'Fern' })),
  'put, replaces': await count('put, replaces', (index) => send(200, 'PUT', `/plants/${index + 20}`, { name: 'Ivy' })),
  delete: await count('delete', (index) => send(204, 'DELETE', `/plants/${index + 1}`)),
}

for (const [name, calls] of Object.entries(found)) {
  const allowed = budget[name as keyof typeof budget]
  const isEnough = isWithin(calls, allowed)
  const columns = COUNTS.map((each) => `${calls[each]} ${each} (${allowed[each]})`)
  console.log(
    `${name.padEnd(18)}${columns.join(', ')}${isEnough ? '' : ': more than its budget in test/calls/budget.json'}`,
  )
  if (!isEnough) process.exitCode = 1
}
