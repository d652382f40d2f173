import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { readPage } from '../support/docs.ts'
import { COMPILED, EXECUTABLE } from '../support/executable.ts'
import { makeFolder } from '../support/folder.ts'
import { makeDatabase } from '../support/postgres.ts'
import { type Cluster, startCluster } from '../support/postgres-cluster.ts'
import { OWN_POSTGRES } from '../support/postgres-system.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program, type Requirement } from '../support/requirement.ts'
import { ALL_BLOCKS, type Block, entryFor, NOT_RUN, OWN_FILES } from './docs-blocks.ts'
import { PROJECT, runWell } from './run.ts'

const ROOT: Requirement = { missing: 'root is missing', isMet: () => process.getuid?.() === 0 }
const PROGRAMS = ['unshare', 'ip', 'curl', 'jq', 'openssl', 'psql']
const isMissing = lacks(ROOT, COMPILED, OWN_POSTGRES, ...PROGRAMS.map(program))

/** Pages whose blocks belong together. The blocks of the others stand for themselves. */
const TUTORIALS = ['docs/tutorial.md']

/**
 * A machine of its own for the commands: its own network, and empty folders in place of those that they change. A server in the
 * foreground runs on until the next one. Every other command runs as it is written.
 */
const PRELUDE = `set -euo pipefail
mount --make-rprivate /
for folder in /usr/local/bin /var/backups /var/lib /run /mnt; do mount -t tmpfs -o mode=755 tmpfs "$folder"; done
mkdir /run/plantstore /var/backups/plantstore /var/lib/plantstore /mnt/replica
ip link set lo up
mkdir dist
ln -s "$PROJECT/contrib" contrib
for name in /usr/local/bin/plantstore dist/plantstore plantstore; do ln -s "$EXECUTABLE" "$name"; done
printf '#!/bin/sh\\nexec %s "$@"\\n' "$EXECUTABLE" > /usr/local/bin/plantstore.old
SERVER_PID=
plantstore() {
  if [ "$BASHPID" != $$ ]; then exec plantstore "$@"; fi
  if [ "$1" != serve ]; then command plantstore "$@"; return; fi
  if [ -n "$SERVER_PID" ]; then kill "$SERVER_PID"; wait "$SERVER_PID"; fi
  command plantstore "$@" > foreground.log 2>&1 &
  SERVER_PID=$!
  until grep -q listening foreground.log; do kill -0 "$SERVER_PID"; sleep 0.02; done
}
`

/** Otherwise an answer like 401 would count as a success. The answers of tutorials are compared, refusals among them. */
const FAILING_CURL = `curl() { command curl --fail "$@"; }
`

/** Makes a store with two tokens and a plant, and a tokens file with one of them. The blocks begin with copies of them. */
const MAKE_STORE = `set -euo pipefail
"$EXECUTABLE" token create --user me > token
"$EXECUTABLE" token create --user me > leaked-token
printf "app read sha256:%064d\\n" 0 > kept-tokens
echo "me write $("$EXECUTABLE" token hash < leaked-token) lost" | cat kept-tokens - > tokens
echo '{"user":"me","id":1,"name":"Monstera"}' | "$EXECUTABLE" import
`
/** Installs the executable as a package does. */
const INSTALL = `rm /usr/local/bin/plantstore
mkdir bin && touch bin/plantstore
mount -t overlay -o "lowerdir=$PWD/bin:/usr/bin" overlay /usr/bin
mount --bind "$EXECUTABLE" /usr/bin/plantstore`
/** Commands that are about a database of their own, in the working directory or on PostgreSQL. */
const OWN_DATABASE = /(?<!\/)\bplantstore\.db|\bserve\b|\.\/plantstore\b|"\$PLANTSTORE_DATABASE"/

/** Copies the store to where the commands expect it. A package finds it by itself, unless they are about an installation by hand. */
function placeStore(commands: string): string {
  const copied = 'cp "$STORE"/* .\nTOKEN=$(cat token)\n'
  if (OWN_DATABASE.test(commands))
    return `${copied}export PLANTSTORE_DATABASE="$PWD/plantstore.db" SERVED="$PWD/plantstore.db"\n`
  const isByHand = commands.includes('/usr/local/bin/')
  const place = isByHand ? 'export PLANTSTORE_DATABASE="$SERVED"' : INSTALL
  return `${copied}mv plantstore.db /var/lib/plantstore\nSERVED=/var/lib/plantstore/plantstore.db\n${place}\n`
}

/** The files that commands read, each with the command that makes it. */
const READ_FILES: readonly (readonly [RegExp, string])[] = [
  [/\b(?:restore|chown 65532) (plants\.db|restored\.db)/, 'plantstore backup'],
  [/\brestore (\/var\/backups\/\S+)/, 'plantstore backup'],
  [/\b(?:import|wc -l) (plants\.jsonl)/, 'plantstore export >'],
  [/\bfind (\/var\/backups\/\S+)/, 'plantstore backup --dir'],
  [/ (damaged\/plantstore\.db) /, 'mkdir damaged; plantstore backup'],
  [/^set -a; \. \.\/(plantstore\.env)/m, 'printf "PLANTSTORE_LISTEN=127.0.0.1:3001\\n" >'],
]
const RUNNING = 'plantstore serve --database "$SERVED"'
const RUNNING_TLS = `${RUNNING} --tls-cert fullchain.pem --tls-key privkey.pem`
/** What is true after commands that would also succeed without an effect. */
const EFFECTS: readonly (readonly [RegExp, string])[] = [
  [/\bmv tokens\.new tokens$/m, 'cmp kept-tokens tokens'],
  [
    /\brestore plants\.db --force --database \/var/,
    'plantstore export --database /var/lib/plantstore/plantstore.db | grep Monstera',
  ],
]

/** How commands name a PostgreSQL database. A file has no quotes around its variable. */
const POSTGRES = '"$PLANTSTORE_DATABASE"'
/** Makes a PostgreSQL database as the commands expect it, and the files that they read. */
function makePostgres(commands: string): string {
  const isEmpty = commands.includes(`copy --from plantstore.db --to ${POSTGRES}`)
  return [
    'export PLANTSTORE_DATABASE="$POSTGRES"',
    'mkdir /run/secrets && touch /run/secrets/database',
    isEmpty ? '' : `plantstore copy --from plantstore.db --to ${POSTGRES}`,
    commands.includes('pg_restore') ? `pg_dump --format=custom --schema=plantstore --file=plants.dump ${POSTGRES}` : '',
    '',
  ].join('\n')
}

let cluster: Cluster | undefined
const store = makeFolder()

/** Runs commands on a machine of their own. Resolves to their output. */
async function runCommands(commands: readonly string[], isTutorial: boolean) {
  using folder = makeFolder()
  const text = commands.join('\n')
  const usesPostgres = text.includes(POSTGRES)
  await using database = usesPostgres ? await makeDatabase({ isEmpty: true, server: cluster?.url }) : undefined
  if (commands.some((command) => command.includes('fullchain.pem'))) {
    const { certPath, keyPath } = await makeCertificate(folder.path, 'plants')
    renameSync(certPath, join(folder.path, 'fullchain.pem'))
    renameSync(keyPath, join(folder.path, 'privkey.pem'))
  }
  const needsServer = /\bcurl\b|healthcheck|s_client/.test(text) && !commands.some((each) => /\bserve\b/.test(each))
  const script = [
    PRELUDE,
    isTutorial ? '' : FAILING_CURL + placeStore(text),
    ...READ_FILES.flatMap(([file, make]) => {
      const [, path] = file.exec(text) ?? []
      return path === undefined || isTutorial ? [] : `${make} ${path} 2> /dev/null\n`
    }),
    usesPostgres ? makePostgres(text) : '',
    !isTutorial && needsServer ? `${text.includes('s_client') ? RUNNING_TLS : RUNNING}\n` : '',
    // A busy machine may answer later than a single question waits.
    ...commands.map((command) => `${command.replace(/\bhealthcheck\b(?!.*--wait)/, '$& --wait 1m')}\n`),
    ...EFFECTS.flatMap(([command, check]) => (command.test(text) ? [`${check}\n`] : [])),
  ].join('')
  await Bun.write(join(folder.path, 'script'), script)
  const isolated = ['unshare', '--mount', '--net', '--pid', '--fork', '--kill-child', '--mount-proc']
  const env = {
    PATH: `/usr/local/bin:${process.env.PATH}`,
    ...{ EXECUTABLE, PROJECT, STORE: store.path, POSTGRES: database?.url ?? '', HOME: '/nonexistent' },
  }
  return await runProgram([...isolated, 'bash', 'script'], { env, cwd: folder.path })
}

const runnable = ({ commands }: Block) => commands.filter((command) => entryFor(command) === undefined)

describe.skipIf(isMissing)('the commands of the documentation', () => {
  beforeAll(async () => {
    cluster = await startCluster()
    await runWell(['env', `EXECUTABLE=${EXECUTABLE}`, 'bash', '-c', MAKE_STORE], store.path)
  })
  afterAll(() => {
    cluster?.[Symbol.dispose]()
    store[Symbol.dispose]()
  })

  const blocks = ALL_BLOCKS.filter((block) => !TUTORIALS.includes(block.page) && runnable(block).length > 0)
  // Several pages show some blocks alike.
  const byCommands = new Map(blocks.map((block) => [runnable(block).join('\n'), block]))

  test.concurrent.each([...byCommands.values()].map((block) => [`${block.page}:${block.line}`, block] as const))(
    'run in %s',
    async (_, block) => {
      const { exitCode, stdout, stderr } = await runCommands(runnable(block), false)

      expect({ exitCode, output: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, output: '' })
    },
  )

  test.each(TUTORIALS)('run in %s from its beginning to its end, and print the shown answers', async (page) => {
    const commands = ALL_BLOCKS.filter((block) => block.page === page).flatMap(runnable)
    const { exitCode, stdout, stderr } = await runCommands(commands, true)
    const shown = [...(await readPage(page)).matchAll(/^```text\n([\s\S]*?)^```$/gm)].flatMap(([, text = '']) =>
      text.trim().split('\n'),
    )

    expect({ exitCode, output: exitCode === 0 ? '' : stdout + stderr }).toEqual({ exitCode: 0, output: '' })
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.filter((line) => !stdout.includes(line))).toEqual([])
  })
})

test('no how-to restores into a file of the working directory, unless it is a drill', () => {
  const restores = ALL_BLOCKS.filter(({ page }) => !TUTORIALS.includes(page)).flatMap(({ page, line, commands }) =>
    commands.flatMap((command) => {
      const [, database = ''] = /\bplantstore restore .*--database (\S+)/.exec(command) ?? []
      return database === '' ? [] : [{ at: `${page}:${line}`, database }]
    }),
  )

  expect(restores.length).toBeGreaterThan(3)
  expect(restores.filter(({ database }) => !/^(?:\/\S+|drill\.db)$/.test(database))).toEqual([])
})

test('each reason why a command is not run has a command', () => {
  const used = new Set(ALL_BLOCKS.flatMap(({ commands }) => commands.map(entryFor)))

  expect(Object.keys(NOT_RUN).filter((start) => !used.has(start))).toEqual([])
})

test('only their owner can read the files of plants and tokens that commands of the documentation make', () => {
  // `plantstore` itself makes such files: these are made by the shell or by PostgreSQL.
  const makesFile = /\bplantstore\S* .*(?:backup -|export|token create|token rotate)\b.* >|\bpg_dump .*--file=/
  const makers = ALL_BLOCKS.flatMap(({ page, line, commands }) =>
    commands.filter((command) => makesFile.test(command)).map((command) => ({ at: `${page}:${line}`, command })),
  )

  expect(makers.length).toBeGreaterThan(10)
  expect(makers.filter(({ command }) => !command.startsWith(OWN_FILES))).toEqual([])
})
