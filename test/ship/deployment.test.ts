import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeFolder } from '../support/folder.ts'
import { lacks, program } from '../support/requirement.ts'
import { CONTAINERS, startContainer } from './container.ts'
import { imageConfiguration } from './dockerfile.ts'
import { makeImageRoot } from './image-root.ts'
import { kubernetesProblems } from './kubernetes.ts'
import { PLANT_ROUND, plantRound } from './plant-round.ts'
import { readmeFile } from './readme-blocks.ts'
import { runIn, runWell } from './run.ts'

/** The default of `--drain`. Docker and Kubernetes must wait longer for a server to end. */
const DRAIN_DEFAULT_S = 8
const PACKAGES_TIMEOUT_MS = 60_000

/** The seconds of a duration like `8s`. */
const secondsOf = (duration: string | undefined): number => Number(duration?.replace(/s$/, ''))
const optionOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

const compose = await parseYaml('compose.yaml')
const [statefulSet, service] = await parseYaml('plantstore.yaml')
const pod = statefulSet.spec.template.spec
const [container] = pod.containers

// biome-ignore lint/suspicious/noExplicitAny: tests compare it as a whole
async function parseYaml(name: string): Promise<any> {
  return Bun.YAML.parse(await readmeFile(name))
}

describe('the Compose file of the README', () => {
  test.skipIf(lacks(program('docker-compose')))('is valid for docker-compose, which refuses a wrong one', async () => {
    using folder = makeFolder()
    const file = join(folder.path, 'compose.yaml')
    const config = async (text: string) => {
      await Bun.write(file, text)
      return runIn(['docker-compose', '--file', file, 'config', '--quiet'])
    }
    const text = await readmeFile('compose.yaml')
    const wrong = await config(text.replace('read_only', 'read_onely'))

    expect(await config(text)).toEqual({ stdout: '', stderr: '', exitCode: 0 })
    expect({ ...wrong, stderr: wrong.stderr.includes('read_onely') }).toEqual({ stdout: '', stderr: true, exitCode: 1 })
  })

  test('keeps only /data, drops all rights, and waits longer than the server takes to end', () => {
    const { volumes, ports, read_only, cap_drop, security_opt, stop_grace_period } = compose.services.plantstore

    expect({ volumes, ports, read_only, cap_drop, security_opt }).toEqual({
      volumes: ['plants:/data'],
      ports: ['127.0.0.1:3000:3000'],
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    })
    expect(Object.keys(compose.volumes)).toEqual(['plants'])
    expect(secondsOf(stop_grace_period)).toBeGreaterThan(DRAIN_DEFAULT_S)
  })
})

describe('the Kubernetes manifest of the README', () => {
  test('fits the types of the API of Kubernetes', async () => {
    const misspelt = structuredClone(statefulSet)
    misspelt.spec.template.spec.containers[0].securityContext.readOnlyRootFilesytem = true
    const wrong = structuredClone(service)
    wrong.spec.ports[0].port = 'eighty'

    expect(await kubernetesProblems([statefulSet, service])).toEqual([])
    expect(await kubernetesProblems([misspelt, wrong])).toEqual([
      expect.stringContaining('readOnlyRootFilesytem'),
      "Type 'string' is not assignable to type 'number'.",
    ])
  })

  test('drops all rights, and waits longer than the server takes to end', () => {
    expect({ ...pod.securityContext, ...container.securityContext }).toEqual({
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      fsGroup: 65532,
      fsGroupChangePolicy: 'OnRootMismatch',
      seccompProfile: { type: 'RuntimeDefault' },
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(optionOf(container.args, '--drain-wait')).toBe('5s')
    expect(secondsOf(optionOf(container.args, '--drain'))).toBeGreaterThan(5)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(secondsOf(optionOf(container.args, '--drain')))
  })

  test('disables service links, whose variables would begin like those of plantstore', () => {
    expect(service.metadata.name).toBe('plantstore')
    expect(pod.enableServiceLinks).toBe(false)
  })

  test('uses the same names in all its parts', () => {
    const { selector, template, volumeClaimTemplates } = statefulSet.spec

    expect(template.metadata.labels).toEqual(selector.matchLabels)
    expect(service.spec.selector).toEqual(selector.matchLabels)
    expect(statefulSet.spec.serviceName).toBe(service.metadata.name)
    expect(container.ports).toEqual([{ name: service.spec.ports[0].targetPort, containerPort: 3000 }])
    expect(container.volumeMounts).toEqual([{ name: volumeClaimTemplates[0].metadata.name, mountPath: '/data' }])
  })
})

describe.skipIf(lacks(CONTAINERS))('a container of the Kubernetes manifest, run by runc', () => {
  let root: Awaited<ReturnType<typeof makeImageRoot>> | undefined

  beforeAll(async () => {
    root = await makeImageRoot()
  }, PACKAGES_TIMEOUT_MS)
  afterAll(() => root?.[Symbol.dispose]())

  test('serves, answers the probes, and is not ready once it is asked to end', async () => {
    const { env, args } = await imageConfiguration()
    const { runAsUser } = pod.securityContext
    await using running = await startContainer({
      root: root?.path ?? '',
      user: runAsUser,
      env,
      args: [args[0] ?? '', ...container.args],
      dataMode: 0o770,
    })
    await running.waitFor([args[0] ?? '', 'healthcheck'])
    const enter = ['nsenter', '--net', `--target=${await running.pid()}`]
    const curl = [...enter, 'curl', '--silent', '--write-out', '%{http_code}']
    const probe = async (name: string) =>
      (await runWell([...curl, '--output', '/dev/null', `http://127.0.0.1:3000${container[name].httpGet.path}`])).trim()
    const ready = await Promise.all(['startupProbe', 'livenessProbe', 'readinessProbe'].map(probe))
    const answers = await plantRound(running)
    const ended = running.end()
    const deadlineMs = performance.now() + 4000
    let readiness = '200'
    while (readiness === '200' && performance.now() < deadlineMs) readiness = await probe('readinessProbe')
    const meanwhile = await probe('livenessProbe')

    expect({ ready, answers, readiness, meanwhile }).toEqual({
      ready: ['200', '200', '200'],
      answers: PLANT_ROUND,
      readiness: '503',
      meanwhile: '200',
    })
    expect(await ended).toMatchObject({ exitCode: 0, stderr: '' })
  })
})
