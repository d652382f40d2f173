import { join } from 'node:path'
import { type Server, startContestant } from './servers.ts'
import { SCRATCH, type Workspace } from './workspace.ts'

/** A program that does the work of the service. Its last argument is the path of the database. */
interface Peer {
  readonly command: readonly string[]
  /** What builds the program in the peer's folder. It needs the program that it names first. */
  readonly build?: readonly string[]
}

const FOLDER = join(import.meta.dir, 'contestants')
const AXUM_TARGET = join(SCRATCH, 'axum')
const GO_PROGRAM = join(SCRATCH, 'go/plantstore-go')

const PEERS = {
  axum: {
    build: ['cargo', 'build', '--release', '--locked', '--quiet', '--target-dir', AXUM_TARGET],
    command: [join(AXUM_TARGET, 'release/plantstore-axum')],
  },
  go: {
    build: ['go', 'build', '-trimpath', '-o', GO_PROGRAM, '.'],
    command: [GO_PROGRAM],
  },
  elysia: { command: ['bun', join(FOLDER, 'elysia.ts')] },
} as const satisfies Readonly<Record<string, Peer>>

/** The name of a peer. */
export type PeerName = keyof typeof PEERS
const PEER_NAMES = ['axum', 'go', 'elysia'] as const satisfies readonly PeerName[]

/** The peers of this machine. */
export interface Peers {
  readonly present: readonly PeerName[]
  /** A sentence for each peer that could not be built. */
  readonly missing: readonly string[]
}

/** Builds the peers. The first build takes two minutes. Throws if one cannot be built and this is CI. */
export function buildPeers(say: (text: string) => void, isCi = process.env.CI === 'true'): Peers {
  const built = PEER_NAMES.map((name) => ({ name, reason: buildPeer(name, PEERS[name], say) }))
  const missing = built.flatMap(({ name, reason }) => (reason === undefined ? [] : [`MISSING: ${name}: ${reason}`]))
  if (isCi && missing.length > 0) throw new Error(missing.join('\n'))
  missing.forEach(say)
  return { present: built.filter(({ reason }) => reason === undefined).map(({ name }) => name), missing }
}

/** Starts a peer on a database. */
export const startPeer = (workspace: Workspace, name: PeerName, database: string, cores?: string): Promise<Server> =>
  startContestant(workspace, name, [...PEERS[name].command, database], cores)

/** Returns why a peer cannot be built, if so. */
function buildPeer(name: PeerName, { build = [] }: Peer, say: (text: string) => void): string | undefined {
  const [program] = build
  if (program === undefined) return undefined
  if (Bun.which(program) === null) return `${program} is not installed`
  say(`building ${name}`)
  const { success, stdout, stderr } = Bun.spawnSync([...build], { cwd: join(FOLDER, name) })
  return success ? undefined : `${build.join(' ')} failed:\n${stdout}${stderr}`
}
