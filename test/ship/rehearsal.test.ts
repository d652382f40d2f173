import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { blockAfter } from '../support/docs.ts'
import { IS_LONG } from '../support/long.ts'
import { runProgram } from '../support/program.ts'
import { lacks, program } from '../support/requirement.ts'
import { CONTAINERS } from './container.ts'
import { DOCKER, startDocker } from './docker.ts'
import { copyProject, HOMEPAGE } from './project-copy.ts'
import { startRegistry } from './registry.ts'
import { runWell } from './run.ts'
import { releaseCommand } from './workflow.ts'

const { version } = manifest
/** What the forge tells the steps of its workflow. */
const [GITHUB_REPOSITORY = '', GITHUB_REPOSITORY_OWNER = ''] = /([^/]+)\/[^/]+$/.exec(HOMEPAGE) ?? []
const IMAGE = `ghcr.io/${GITHUB_REPOSITORY.toLowerCase()}`
const FORGE = { GITHUB_REF_NAME: `v${version}`, GITHUB_REPOSITORY, GITHUB_REPOSITORY_OWNER }
const PROGRAMS = ['buildah', 'cosign', 'docker-registry', 'qemu-aarch64', 'shasum']
const NEEDS = [CONTAINERS, ...PROGRAMS.map(program)]

/** Stands in front of cosign, and gives it a key of its own instead of the forge's identity, because nobody here has that. */
const cosignWithKey = (folder: string) => `#!/bin/bash
command=$1
shift
arguments=()
while [ $# -gt 0 ]; do
  case $1 in --certificate-*) shift ;; *) arguments+=("$1") ;; esac
  shift
done
case $command in
  verify*) key=(--key "${folder}/cosign.pub" --insecure-ignore-tlog) ;;
  *) key=(--key "${folder}/cosign.key" --tlog-upload=false) ;;
esac
exec ${Bun.which('cosign')} "$command" "\${arguments[@]}" "\${key[@]}"
`

/** Prepares a clone for the steps of a release, with a key and a registry, until it is disposed of. */
async function startRehearsal() {
  const project = await copyProject()
  const registry = await startRegistry()
  const bin = join(project.path, 'dist/bin')
  mkdirSync(bin, { recursive: true })
  await runWell(['env', 'COSIGN_PASSWORD=', 'cosign', 'generate-key-pair'], bin)
  writeFileSync(join(bin, 'cosign'), cosignWithKey(bin), { mode: 0o755 })
  const image = `${registry.address}/${GITHUB_REPOSITORY.toLowerCase()}`
  const PATH = `${bin}:${registry.bin}:${process.env.PATH}`
  const environment = { ...process.env, ...FORGE, COSIGN_PASSWORD: '', FINAL_IMAGE: registry.base, PATH }
  /** Runs commands as they are written, but with the registry of this machine. Prints them for the log. */
  const run = async (commands: string, variables: Readonly<Record<string, string>> = {}, cwd = '.') => {
    const text = commands.replaceAll(/\bghcr\.io(?:\/OWNER\/plantstore)?/g, (name) =>
      name === 'ghcr.io' ? registry.address : image,
    )
    const env = { ...environment, ...variables }
    const ended = await runProgram(['bash', '-euo', 'pipefail', '-c', text], { cwd: join(project.path, cwd), env })
    console.log(`$ ${text.trim()}\n${ended.stdout}${ended.stderr}exit code ${ended.exitCode}\n`)
    return ended
  }
  return {
    image,
    registry,
    run,
    folder: project.path,
    release: join(project.path, 'dist/release'),
    runStep: async (job: string, step: string, variables?: Readonly<Record<string, string>>) =>
      run(await releaseCommand(job, step), variables),
    async [Symbol.asyncDispose]() {
      await registry[Symbol.asyncDispose]()
      project[Symbol.dispose]()
    },
  }
}

describe.skipIf(!IS_LONG || lacks(...NEEDS))('the rehearsal of a release', () => {
  let rehearsal: Awaited<ReturnType<typeof startRehearsal>>

  beforeAll(async () => {
    rehearsal = await startRehearsal()
    const { exitCode } = await rehearsal.runStep('build', 'Release')
    expect(exitCode).toBe(0)
  })

  afterAll(() => rehearsal?.[Symbol.asyncDispose]())

  test('refuses a tag that is not the version, and another repository', async () => {
    const step = ['build', 'See that package.json names this tag and this repository'] as const

    expect(await rehearsal.runStep(...step)).toMatchObject({ exitCode: 0 })
    expect(await rehearsal.runStep(...step, { GITHUB_REF_NAME: 'v0.9.0' })).toMatchObject({ exitCode: 1 })
    expect(await rehearsal.runStep(...step, { GITHUB_REPOSITORY: 'other/plantstore' })).toMatchObject({ exitCode: 1 })
  })

  test('finds a release of another machine the same', async () => {
    const { folder, release, runStep } = rehearsal
    for (const name of ['release-x64', 'release-arm64'])
      cpSync(release, join(folder, 'dist', name), { recursive: true })
    const { exitCode, stdout } = await runStep('compare', 'See that both machines made the same release')

    expect(exitCode).toBe(0)
    expect(stdout.match(/: the same bytes$/gm)).toHaveLength(5)
  })

  test('starts the archive, and finds the plant after another start', async () => {
    const tried = await rehearsal.runStep('try', 'Unpack, start, create, start again and list', { TARGET: 'linux-x64' })

    expect(tried.exitCode).toBe(0)
    expect(tried.stdout).toContain('\n{"name":"Monstera"}\n[{"name":"Monstera"}]\n')
  })

  test('signs the sums so that the commands of the page verify an archive, and refuse a changed byte of both', async () => {
    const { run, runStep } = rehearsal
    const verify = await blockAfter('commands of: rehearsal.test.ts, files')
    const archive = `plantstore-${version}-linux-x64.tar.gz`
    const signed = await runStep('publish', 'Sign the sums')
    const tryChanged = (folder: string, file: string) => {
      const change = `mkdir ${folder}\ncp ${archive} SHA256SUMS* ${folder}\ncd ${folder}\necho >> ${file}\n`
      return run(change + verify, {}, 'dist/release')
    }

    expect(signed.exitCode).toBe(0)
    expect(await run(verify, {}, 'dist/release')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining(`${archive}: OK`),
      stderr: expect.stringContaining('Verified OK'),
    })
    expect(await tryChanged('changed-sums', 'SHA256SUMS')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining('invalid signature'),
    })
    expect(await tryChanged('changed-archive', archive)).toMatchObject({
      exitCode: 1,
      stdout: `${archive}: FAILED\n`,
      stderr: expect.stringContaining('Verified OK'),
    })
  })

  test('takes the notes from the changelog', async () => {
    const { exitCode } = await rehearsal.runStep('publish', 'Take the notes from the changelog')
    const notes = await Bun.file(join(rehearsal.folder, 'dist/notes.md')).text()

    expect(exitCode).toBe(0)
    expect(await Bun.file(join(rehearsal.folder, 'CHANGELOG.md')).text()).toContain(notes)
  })

  test('pushes an image for two architectures under three tags, signs it, and attests its bill of materials', async () => {
    const { image, registry, run, runStep, folder } = rehearsal
    const output = join(folder, 'dist/output')
    const pushed = await runStep('image', 'Build and push the image', { GITHUB_OUTPUT: output })
    const [, digest = ''] = /^digest=(sha256:[0-9a-f]{64})$/m.exec(await Bun.file(output).text()) ?? []
    const unsigned = await run(await blockAfter('commands of: rehearsal.test.ts, image'))
    const signed = await runStep('image', 'Sign the image', { IMAGE: image, DIGEST: digest })
    const verified = await run(await blockAfter('commands of: rehearsal.test.ts, image'))
    const sbom = `dist/release/plantstore-${version}.cdx.json`
    const attested = await run(`cosign attest --yes --type cyclonedx --predicate ${sbom} ${image}@${digest}`)
    const attestation = await run(`cosign verify-attestation --type cyclonedx ${image}@${digest} > dist/attestation`)

    expect([pushed, signed, verified, attested, attestation].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0, 0, 0])
    expect(unsigned).toMatchObject({ exitCode: 10, stderr: expect.stringContaining('no signatures found') })
    expect(verified.stdout).toContain(digest)
    const tags = [version, version.replace(/\.\d+$/, ''), 'latest']
    const found = await Promise.all(tags.map((tag) => manifestOf(image, tag)))
    expect(found.map((each) => each.digest)).toEqual(Array(3).fill(digest))
    expect(found[0]?.architectures).toEqual(['amd64', 'arm64'])

    for (const [arch, runner] of Object.entries({ amd64: [], arm64: ['qemu-aarch64', '-L', 'ROOT'] })) {
      const container = await registry.buildah('from', `--arch=${arch}`, '--pull-always', `${image}:${version}`)
      const root = await registry.buildah('mount', container)
      const { Docker } = JSON.parse(await registry.buildah('inspect', container))
      const command = [...runner.map((word) => word.replace('ROOT', root)), join(root, 'usr/local/bin/plantstore')]
      const printed = await runWell([...command, '--version'])

      expect(printed).toStartWith(`${version}+`)
      expect(readdirSync(join(root, 'data'))).toEqual([])
      expect(Docker.config.Healthcheck.Test).toContain('healthcheck')
      expect(Docker.config.Labels).toMatchObject({
        'org.opencontainers.image.title': 'Plant Store',
        'org.opencontainers.image.version': version,
        'org.opencontainers.image.revision': expect.stringMatching(/^[0-9a-f]{40}$/),
        'org.opencontainers.image.source': HOMEPAGE,
      })
    }
  })

  test.skipIf(lacks(...DOCKER))(
    'has archives whose lines for Docker and Compose start the pushed image, and whose manifests for Kubernetes name it',
    async () => {
      const archive = join(rehearsal.release, `plantstore-${version}-linux-x64`)
      await using docker = await startDocker(rehearsal.registry.address)
      const run = (script: string) =>
        runWell(['env', `PATH=${docker.bin}:${process.env.PATH}`, 'bash', '-euo', 'pipefail', '-c', script], archive)
      const page = await Bun.file(join(archive, 'docs/how-to/install.md')).text()
      const commandsOf = (row: string): string => {
        const [line = ''] = new RegExp(`^\\| \\[${row}\\].*`, 'm').exec(page) ?? []
        return [...line.matchAll(/`([^`]+)`/g)].map(([, command]) => command).join('\n')
      }
      const byDocker = await run(`${commandsOf('image')} --wait 1m`)
      await run('docker rm --force plantstore')
      const byCompose = await run(`${commandsOf('Compose')} --wait 1m`)
      const folders = ['sqlite', 'postgres'].map((name) => `kustomize build contrib/kubernetes/${name}`).join('; ')
      const images = await run(
        `{ ${folders}; cat contrib/kubernetes/postgres/tokens.yaml; } | grep --only-matching 'image: ghcr.*'`,
      )

      for (const printed of [byDocker, byCompose]) expect(printed).toMatch(/^plst_/m)
      expect(new Set(images.trim().split('\n'))).toEqual(new Set([`image: ${IMAGE}:${version}`]))
    },
  )
})

/** The digest of an image's list of manifests, and its architectures. */
async function manifestOf(image: string, tag: string) {
  const [host = '', ...name] = image.split('/')
  const answer = await fetch(`http://${host}/v2/${name.join('/')}/manifests/${tag}`, {
    headers: { Accept: 'application/vnd.docker.distribution.manifest.list.v2+json' },
  })
  const list = (await answer.json()) as { manifests: { platform: { architecture: string } }[] }
  return {
    digest: answer.headers.get('docker-content-digest'),
    architectures: list.manifests.map(({ platform }) => platform.architecture).sort(),
  }
}
