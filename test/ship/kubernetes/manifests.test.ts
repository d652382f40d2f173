import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import manifest from '../../../package.json'
import { PAGES, PUBLISHED_IMAGE, readContrib, readPage, yamlInContrib } from '../../support/docs.ts'
import { runProgram } from '../../support/program.ts'
import { lacks, program } from '../../support/requirement.ts'
import { runWell } from '../run.ts'
import { makeSchemas } from './schemas.ts'

const FOLDER = 'contrib/kubernetes'
const TOOLS = `${FOLDER}/sqlite/tools.yaml`
const DUMPS = `${FOLDER}/postgres/backup.yaml`
const TOKENS = `${FOLDER}/postgres/tokens.yaml`
/** The files that are no part of a kustomization. */
const APPLIED_ALONE = [TOOLS, DUMPS, TOKENS]

const service = await yamlInContrib(`${FOLDER}/base/service.yaml`)
const [metricsService, monitor] = await yamlInContrib(`${FOLDER}/base/service-monitor.yaml`)
const statefulSet = await yamlInContrib(`${FOLDER}/sqlite/stateful-set.yaml`)
const [backupClaim, cronJob] = await yamlInContrib(`${FOLDER}/sqlite/backup.yaml`)
const tools = await yamlInContrib(TOOLS)
const tokensJob = await yamlInContrib(TOKENS)
const [, dumpJob] = await yamlInContrib(DUMPS)
const deployment = await yamlInContrib(`${FOLDER}/postgres/deployment.yaml`)
const budget = await yamlInContrib(`${FOLDER}/postgres/disruption-budget.yaml`)

const KUSTOMIZATIONS = ['sqlite', 'postgres']

const build = (name: string): Promise<string> => runWell(['kustomize', 'build', `${FOLDER}/${name}`])
/** The pod that a workload makes. Of other objects, nothing. */
const podOf = ({ spec }: typeof statefulSet) => (spec.jobTemplate?.spec ?? spec).template?.spec
const secondsOf = (duration: string | undefined): number => Number(duration?.replace(/s$/, ''))
const optionOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

let schemas: Awaited<ReturnType<typeof makeSchemas>> | undefined

/** What kubeconform prints about a manifest. An empty text if it is valid. */
async function problemsOf(manifest: string): Promise<string> {
  const kubeconform = ['kubeconform', '-strict', '-schema-location', schemas?.location ?? '']
  const { stdout, stderr } = await runProgram(kubeconform, { stdin: manifest })
  return stdout + stderr
}

describe.skipIf(lacks(...['kubeconform', 'kustomize', 'go'].map(program)))('kubeconform', () => {
  beforeAll(async () => {
    schemas = await makeSchemas()
  })
  afterAll(() => schemas?.[Symbol.dispose]())

  test.each([...KUSTOMIZATIONS, ...APPLIED_ALONE])('finds nothing wrong in %s', async (name) => {
    expect(await problemsOf(await (name.includes('/') ? readContrib(name) : build(name)))).toBe('')
  })

  test.each([
    ['a misspelt field', 'readOnlyRoot', 'readOnlyRot', "'readOnlyRotFilesystem' not allowed"],
    ['a misspelt field of a PrometheusRule', 'annotations:', 'annotation:', "'annotation' not allowed"],
    ['a misspelt field of a ServiceMonitor', 'jobLabel', 'joblabel', "'joblabel' not allowed"],
  ])('finds %s', async (_, right, wrong, problem) => {
    expect(await problemsOf((await build('postgres')).replace(right, wrong))).toContain(problem)
  })
})

test.skipIf(lacks(program('kustomize'))).each(KUSTOMIZATIONS)(
  'every pod of what kustomize builds of %s has the published image',
  async (name) => {
    const objects = Bun.YAML.parse(await build(name)) as (typeof statefulSet)[]
    const containers = objects.flatMap((object) => podOf(object)?.containers ?? [])

    expect(new Set(containers.map(({ image }) => image))).toEqual(new Set([`${PUBLISHED_IMAGE}:${manifest.version}`]))
  },
)

/** All pods. The last two mount the database of the StatefulSet. */
const PODS = [
  { name: 'the StatefulSet', pod: podOf(statefulSet) },
  { name: 'the Deployment', pod: podOf(deployment) },
  { name: 'the dumps', pod: podOf(dumpJob) },
  { name: 'the import of tokens', pod: podOf(tokensJob) },
  { name: 'the backups', pod: podOf(cronJob) },
  { name: 'the pod for tools', pod: tools.spec },
]
const MEMORY_UNITS: Readonly<Record<string, number>> = { Mi: 1, Gi: 1024 }
const cpusOf = (text: string) => (text.endsWith('m') ? Number(text.slice(0, -1)) / 1000 : Number(text))
const mibOf = (text: string) => Number(text.slice(0, -2)) * (MEMORY_UNITS[text.slice(-2)] ?? Number.NaN)

describe.each(PODS)('each container of $name', ({ pod }) => {
  test('drops all rights, and has no service links, whose variables would begin like those of plantstore', () => {
    expect(service.metadata.name).toBe('plantstore')
    expect(pod).toMatchObject({ enableServiceLinks: false, automountServiceAccountToken: false })
    for (const container of pod.containers) {
      expect({ ...pod.securityContext, ...container.securityContext }).toMatchObject({
        runAsNonRoot: true,
        runAsUser: 65532,
        runAsGroup: 65532,
        seccompProfile: { type: 'RuntimeDefault' },
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      })
    }
  })

  test('asks for CPU and memory, and has a limit for each', () => {
    for (const { requests, limits } of pod.containers.map(({ resources }: typeof statefulSet) => resources)) {
      expect(cpusOf(requests.cpu)).toBeGreaterThan(0)
      expect(cpusOf(limits.cpu)).toBeGreaterThanOrEqual(cpusOf(requests.cpu))
      expect(mibOf(requests.memory)).toBeGreaterThan(0)
      expect(mibOf(limits.memory)).toBeGreaterThanOrEqual(mibOf(requests.memory))
    }
  })
})

describe.each([statefulSet, deployment])('the pods of the $kind', ({ spec: { selector, template } }) => {
  const [container] = template.spec.containers
  const [drain, drainWait, metricsAddress] = ['--drain', '--drain-wait', '--metrics-listen'].map((flag) =>
    optionOf(container.args, flag),
  )

  test('have longer than the server takes to end', () => {
    expect(secondsOf(drainWait)).toBeGreaterThan(0)
    expect(secondsOf(drain)).toBeGreaterThan(secondsOf(drainWait))
    expect(template.spec.terminationGracePeriodSeconds).toBeGreaterThan(secondsOf(drain))
  })

  test('are found by both Services, and their metrics by the ServiceMonitor as the job plantstore', () => {
    const [port, metricsPort] = [service, metricsService].map(({ spec }) => spec.ports[0].targetPort)

    for (const labels of [selector.matchLabels, service.spec.selector, metricsService.spec.selector])
      expect(template.metadata.labels).toEqual(labels)
    expect(container.ports).toEqual([
      { name: port, containerPort: 3000 },
      { name: metricsPort, containerPort: Number(metricsAddress?.split(':')[1]) },
    ])
    expect(monitor.spec.selector.matchLabels).toEqual(metricsService.metadata.labels)
    expect(monitor.spec.endpoints).toEqual([{ port: metricsService.spec.ports[0].name }])
    expect(metricsService.metadata.labels[monitor.spec.jobLabel]).toBe('plantstore')
  })
})

test('the StatefulSet has the name of its Service, and the budget and the spread are of the pods of the Deployment', () => {
  const { selector, template } = deployment.spec

  expect(statefulSet.spec.serviceName).toBe(service.metadata.name)
  expect(budget.spec.selector).toEqual(selector)
  expect(template.spec.topologySpreadConstraints[0].labelSelector).toEqual(selector)
})

test.each(PODS.slice(-2))(
  '$name mounts the claims of the StatefulSet and of the backups on the same node',
  ({ pod }) => {
    const { requiredDuringSchedulingIgnoredDuringExecution: required, ...preferred } = pod.affinity.podAffinity
    const [term] = required ?? preferred.preferredDuringSchedulingIgnoredDuringExecution
    const { labelSelector, topologyKey } = term.podAffinityTerm ?? term
    const claim = `${statefulSet.spec.volumeClaimTemplates[0].metadata.name}-${statefulSet.metadata.name}-0`

    expect(pod.volumes.slice(0, 2)).toEqual([
      { name: 'data', persistentVolumeClaim: { claimName: claim } },
      { name: 'backups', persistentVolumeClaim: { claimName: backupClaim.metadata.name } },
    ])
    // Only one node can mount the claim, and its files belong to the group.
    expect({ labelSelector, topologyKey }).toEqual({
      labelSelector: statefulSet.spec.selector,
      topologyKey: 'kubernetes.io/hostname',
    })
    expect(pod.securityContext).toEqual(podOf(statefulSet).securityContext)
  },
)

test('no Service sends requests to the pods of the jobs or to the pod for tools', () => {
  for (const { spec } of [cronJob, dumpJob, tokensJob]) {
    expect((spec.jobTemplate?.spec ?? spec).template.metadata.labels.app).not.toBe(service.spec.selector.app)
  }
  expect(tools.metadata.labels).toBeUndefined()
})

test('every file of the folder is part of a kustomization, or named by the documentation', async () => {
  const files = (await runWell(['find', FOLDER, '-name', '*.yaml', '-not', '-name', 'kustomization.yaml'])).trim()
  const listed = await Promise.all(
    ['base', ...KUSTOMIZATIONS].map(async (name) => {
      const { resources } = await yamlInContrib(`${FOLDER}/${name}/kustomization.yaml`)
      return resources.map((file: string) => `${FOLDER}/${name}/${file}`)
    }),
  )
  const pages = (await Promise.all(PAGES.map(readPage))).join()

  for (const file of APPLIED_ALONE) expect(pages).toContain(file)
  expect(files.split('\n').filter((file) => ![...listed.flat(), ...APPLIED_ALONE].includes(file))).toEqual([])
})
