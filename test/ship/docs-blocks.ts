import { PAGES, readPage } from '../support/docs.ts'

/** Commands that no test runs as they are written, by how they begin, and the reason. */
export const NOT_RUN: Readonly<Record<string, string>> = {
  docker: 'needs a Docker daemon',
  certbot: 'needs an authority',
  'mkdir -p /var/www/acme': 'changes the machine',
  aws: 'needs an object store',
  rclone: 'needs an object store',
  'plantstore backup "$name"': 'needs an object store',
  kubectl: 'needs a cluster; tools.test.ts runs the commands of the pod for tools',
  'IMAGE=$(kubectl': 'needs a cluster',
  systemctl: 'needs the unit, which unit.test.ts runs',
  journalctl: 'needs the journal of a machine',
  'bun install': 'the check has run it before',
  'bun run build': 'the check has run it before',
  'bun run': 'a command for developers, which takes minutes',
  'bun start': 'starts a server from the sources of the clone',
  'bash .ci/run': 'is the check itself',
  'apt-get': 'changes the machine',
  'apt install': 'changes the machine; packages.test.ts installs, upgrades and removes packages',
  'dnf install': 'needs Fedora or RHEL; packages.test.ts does the same with rpm',
  'runuser -u plantstore': 'needs the user of a package; packages.test.ts runs it',
  gh: 'needs the published release',
  litestream: 'litestream.test.ts tries it beside a server',
  pg_repack: 'needs an extension',
  "psql --dbname=plantstore --command 'create extension pg_repack'": 'needs an extension',
  npm: 'needs packages from a registry',
  npx: 'needs packages from a registry',
  pip: 'needs packages from a registry',
  'openapi-python-client': 'needs packages from a registry',
  'go run': 'needs packages from a registry',
  'go mod': 'needs packages from a registry',
  cargo: 'needs packages from a registry; `bun run conformance` runs it',
  "jq 'del(.paths[][].responses.default)'": '`bun run conformance` runs it',
}

/** The commands of a `sh` block. */
export interface Block {
  readonly page: string
  /** The line of the page at which the block begins. */
  readonly line: number
  readonly commands: readonly string[]
}

/** All `sh` blocks of a page, but for those that a test runs as a file: a comment before them names it. */
export async function blocksOf(page: string): Promise<readonly Block[]> {
  const text = await readPage(page)
  return [...text.matchAll(/^( *)```sh\n([\s\S]*?)^ *```$/gm)].flatMap(({ index, 1: indent = '', 2: body = '' }) => {
    const before = text.slice(0, index)
    if (/<!-- commands of: [^>]+ -->\n$/.test(before)) return []
    const lines = body.split('\n').map((line) => line.slice(indent.length))
    return [{ page, line: before.split('\n').length, commands: commandsOf(lines) }]
  })
}

/** Joins the lines of a command: those that end with a backslash or `&&`, and those of a loop. */
function commandsOf(lines: readonly string[]): readonly string[] {
  const commands: string[] = []
  let command = ''
  for (const line of lines) {
    command += `${line}\n`
    const isOpen = /(?:\\|&&)$/.test(line) || (/^(?:for|while|until) /.test(command) && !/\bdone\b/.test(command))
    if (isOpen) continue
    if (command.trim() !== '' && !command.startsWith('#')) commands.push(command.trim())
    command = ''
  }
  return commands
}

/** The beginning of a command whose files only their owner can read. */
export const OWN_FILES = '(umask 077 && '

/** The entry of `NOT_RUN` for a command: the longest that it begins with, perhaps after `OWN_FILES`. */
export const entryFor = (command: string): string | undefined =>
  Object.keys(NOT_RUN)
    .filter((start) => {
      const pattern = new RegExp(`^(?:${RegExp.escape(OWN_FILES)})?${RegExp.escape(start)}[ /=]`)
      return command === start || pattern.test(command)
    })
    .sort((a, b) => b.length - a.length)[0]

export const ALL_BLOCKS: readonly Block[] = (await Promise.all(PAGES.map(blocksOf))).flat()
