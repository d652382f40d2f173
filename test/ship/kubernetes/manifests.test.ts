import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import manifest from '../../../package.json'
import { PAGES, PUBLISHED_IMAGE, readContrib, readPage, yamlInContrib } from '../../support/docs.ts'
import { makeFolder } from '../../support/folder.ts'
import { lacks, program } from '../../support/requirement.ts'
import { runIn, runWell } from '../run.ts'
import { makeSchemas } from './schemas.ts'

const FOLDER = 'contrib/kubernetes'
const TOOLS = `${FOLDER}/sqlite/tools.yaml`
const DUMPS = `${FOLDER}/postgres/backup.yaml`
const TOKENS = `${FOLDER}/postgres/tokens.yaml`
/** The files that are no part of a kustomization. */
const APPLIED_ALONE = [TOOLS, DUMPS, TOKENS]
/** The time for a first download of the schemas. */
const SCHEMAS_TIMEOUT_MS = 120_000

const service = await yamlInContrib(`${FOLDER}/base/service.yaml`)
const [metricsService, monitor] = await yamlInContrib(`${FOLDER}/base/service-monitor.yaml`)
const statefulSet = await yamlInContrib(`${FOLDER}/sqlite/stateful-set.yaml`)
const [backupClaim, cronJob] = await yamlInContrib(`${FOLDER}/sqlite/backup.yaml`)
const tools = await yamlInContrib(TOOLS)
const tokensJob = await yamlInContrib(TOKENS)
const [, dumpJob] = await yamlInContrib(DUMPS)
const deployment = await yamlInContrib(`${FOLDER}/postgres/deployment.yaml`)
const budget = await yamlInContrib(`${FOLDER}/postgres/disruption-budget.yaml`)

const KUSTOMIZATIONS = [
  {
    name: 'sqlite',
    workload: statefulSet,
    volumeRights: { fsGroup: 65532, fsGroupChangePolicy: 'OnRootMismatch' },
    own: ['StatefulSet plantstore', 'PersistentVolumeClaim plantstore-backups', 'CronJob plantstore-backup'],
  },
  {
    name: 'postgres',
    workload: deployment,
    volumeRights: {},
    own: ['Deployment plantstore', 'PodDisruptionBudget plantstore'],
  },
]

const build = (name: string): Promise<string> => runWell(['kustomize', 'build', `${FOLDER}/${name}`])
/** The pod that a workload makes. Of other objects, nothing. */
const podOf = ({ spec }: typeof statefulSet) => (spec.jobTemplate?.spec ?? spec).template?.spec
const hasPods = (object: typeof statefulSet): boolean => podOf(object) !== undefined
const imagesOf = (object: typeof statefulSet) =>
  podOf(object).containers.map(({ image }: { readonly image: string }) => image)
const secondsOf = (duration: string | undefined): number => Number(duration?.replace(/s$/, ''))
const optionOf = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]

let schemas: Awaited<ReturnType<typeof makeSchemas>> | undefined

/** What kubeconform prints about a manifest. An empty text if it is valid. */
async function problemsOf(manifest: string): Promise<string> {
  using folder = makeFolder()
  const file = join(folder.path, 'manifest.yaml')
  await Bun.write(file, manifest)
  const { stdout, stderr } = await runIn(['kubeconform', '-strict', '-schema-location', schemas?.location ?? '', file])
  return stdout + stderr
}

describe.skipIf(lacks(...['kubeconform', 'kustomize', 'go'].map(program)))('kubeconform', () => {
  beforeAll(async () => {
    schemas = await makeSchemas()
  }, SCHEMAS_TIMEOUT_MS)
  afterAll(() => schemas?.[Symbol.dispose]())

  test.each(KUSTOMIZATIONS)('finds nothing wrong in what kustomize builds of $name', async ({ name }) => {
    expect(await problemsOf(await build(name))).toBe('')
  })

  test.each(APPLIED_ALONE)('finds nothing wrong in %s', async (file) => {
    expect(await problemsOf(await readContrib(file))).toBe('')
  })

  test.each([
    ['a misspelt field', 'sqlite', 'readOnlyRoot', 'readOnlyRot', "'readOnlyRotFilesystem' not allowed"],
    ['a missing field', 'sqlite', 'containerPort: 3000', 'hostPort: 3000', "missing properties: 'containerPort'"],
    ['a text in place of a number', 'postgres', 'replicas: 3', 'replicas: three', 'expected integer'],
    ['a misspelt field of a PrometheusRule', 'postgres', 'annotations:', 'annotation:', "'annotation' not allowed"],
    ['a misspelt field of a ServiceMonitor', 'postgres', 'jobLabel', 'joblabel', "'joblabel' not allowed"],
    ['an unknown kind', 'postgres', 'DisruptionBudget', 'Buget', 'could not find schema for PodBuget'],
  ])('finds %s', async (_, name, right, wrong, problem) => {
    const manifest = await build(name)

    expect(manifest).toContain(right)
    expect(await problemsOf(manifest.replace(right, wrong))).toContain(problem)
  })
})

describe.skipIf(lacks(program('kustomize')))('kustomize', () => {
  test.each(KUSTOMIZATIONS)(
    'builds all objects of $name, with the image that the kustomization names',
    async (each) => {
      const objects = Bun.YAML.parse(await build(each.name)) as (typeof statefulSet)[]
      const { images } = await yamlInContrib(`${FOLDER}/${each.name}/kustomization.yaml`)
      const shared = [
        'Service plantstore',
        'Service plantstore-metrics',
        'ServiceMonitor plantstore',
        'PrometheusRule plantstore',
      ]
      expect(objects.map(({ kind, metadata }) => `${kind} ${metadata.name}`).sort()).toEqual(
        [...each.own, ...shared].sort(),
      )
      expect(images).toEqual([{ name: 'plantstore', newName: PUBLISHED_IMAGE, newTag: manifest.version }])
      expect(new Set(objects.filter(hasPods).flatMap(imagesOf))).toEqual(
        new Set([`${PUBLISHED_IMAGE}:${manifest.version}`]),
      )
    },
  )
})

describe.each(KUSTOMIZATIONS)('the pods of $name', ({ workload, volumeRights }) => {
  const { selector, template } = workload.spec
  const pod = template.spec
  const [container] = pod.containers
  const metricsAddress = optionOf(container.args, '--metrics-listen')

  test('drop all rights, and have longer than the server takes to end', () => {
    expect({ ...pod.securityContext, ...container.securityContext }).toEqual({
      ...volumeRights,
      runAsNonRoot: true,
      runAsUser: 65532,
      runAsGroup: 65532,
      seccompProfile: { type: 'RuntimeDefault' },
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    })
    expect(optionOf(container.args, '--drain-wait')).toBe('5s')
    expect(secondsOf(optionOf(container.args, '--drain'))).toBeGreaterThan(5)
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(secondsOf(optionOf(container.args, '--drain')))
  })

  test('have no service links, whose variables would begin like those of plantstore', () => {
    expect(service.metadata.name).toBe('plantstore')
    expect(pod.enableServiceLinks).toBe(false)
  })

  test('are found by both Services, and their metrics by the ServiceMonitor as the job plantstore', () => {
    const ports = [service, metricsService].map(({ spec }) => spec.ports[0].targetPort)

    expect(template.metadata.labels).toEqual(selector.matchLabels)
    expect(service.spec.selector).toEqual(selector.matchLabels)
    expect(metricsService.spec.selector).toEqual(selector.matchLabels)
    expect(container.ports).toEqual([
      { name: ports[0], containerPort: 3000 },
      { name: ports[1], containerPort: Number(metricsAddress?.split(':')[1]) },
    ])
    expect(monitor.spec.selector.matchLabels).toEqual(metricsService.metadata.labels)
    expect(monitor.spec.endpoints).toEqual([{ port: metricsService.spec.ports[0].name }])
    expect(metricsService.metadata.labels[monitor.spec.jobLabel]).toBe('plantstore')
  })
})

test('the StatefulSet has one pod, with its volume at /data', () => {
  const { replicas, serviceName, template, volumeClaimTemplates } = statefulSet.spec
  const [{ name }] = [volumeClaimTemplates[0].metadata]

  expect({ replicas, serviceName }).toEqual({ replicas: 1, serviceName: service.metadata.name })
  expect(template.spec.containers[0].volumeMounts).toEqual([{ name, mountPath: '/data' }])
})

test('the Deployment renews its pods one by one, and nodes drain them one by one', () => {
  const { replicas, strategy, selector, template } = deployment.spec

  expect(replicas).toBeGreaterThan(1)
  expect(strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 })
  expect(budget.spec).toMatchObject({ maxUnavailable: 1, selector })
  expect(template.spec.topologySpreadConstraints[0].labelSelector).toEqual(selector)
})

describe.each([
  { name: 'the CronJob', pod: podOf(cronJob) },
  { name: 'the pod for tools', pod: tools.spec },
])('$name of the StatefulSet', ({ pod }) => {
  const server = statefulSet.spec.template.spec

  test('has its user and its security settings in each container, and no service links', () => {
    expect(pod.securityContext).toEqual(server.securityContext)
    expect(pod.enableServiceLinks).toBe(false)
    expect(pod.automountServiceAccountToken).toBe(false)
    for (const container of pod.containers) {
      expect(container.securityContext).toEqual(server.containers[0].securityContext)
    }
  })

  test('mounts its claim at /data and the claim of the backups at /backups, in each container', () => {
    expect(pod.volumes.slice(0, 2)).toEqual([
      { name: 'data', persistentVolumeClaim: { claimName: 'data-plantstore-0' } },
      { name: 'backups', persistentVolumeClaim: { claimName: backupClaim.metadata.name } },
    ])
    for (const { volumeMounts } of pod.containers) {
      expect(volumeMounts.slice(0, 2)).toEqual([
        { name: 'data', mountPath: '/data' },
        { name: 'backups', mountPath: '/backups' },
      ])
    }
  })

  test('is looked for on the node of the server, because only one node can mount the claim', () => {
    const { requiredDuringSchedulingIgnoredDuringExecution: required, ...preferred } = pod.affinity.podAffinity
    const [term] = required ?? preferred.preferredDuringSchedulingIgnoredDuringExecution
    const { labelSelector, topologyKey } = term.podAffinityTerm ?? term

    expect({ labelSelector, topologyKey }).toEqual({
      labelSelector: statefulSet.spec.selector,
      topologyKey: 'kubernetes.io/hostname',
    })
  })
})

const MEMORY_UNITS: Readonly<Record<string, number>> = { Mi: 1, Gi: 1024 }
const cpusOf = (text: string) => (text.endsWith('m') ? Number(text.slice(0, -1)) / 1000 : Number(text))
const mibOf = (text: string) => Number(text.slice(0, -2)) * (MEMORY_UNITS[text.slice(-2)] ?? Number.NaN)

test.each(
  [podOf(statefulSet), podOf(deployment), podOf(cronJob), podOf(dumpJob), podOf(tokensJob), tools.spec].flatMap(
    ({ containers }) => containers,
  ),
)('a container asks for CPU and memory, and has a limit for each: $image', ({ resources: { requests, limits } }) => {
  expect(cpusOf(requests.cpu)).toBeGreaterThan(0)
  expect(cpusOf(limits.cpu)).toBeGreaterThanOrEqual(cpusOf(requests.cpu))
  expect(mibOf(requests.memory)).toBeGreaterThan(0)
  expect(mibOf(limits.memory)).toBeGreaterThanOrEqual(mibOf(requests.memory))
})

test('no Service sends requests to the pods of the jobs or to the pod for tools', () => {
  for (const { template } of [cronJob.spec.jobTemplate.spec, tokensJob.spec]) {
    expect(template.metadata.labels.app).not.toBe(service.spec.selector.app)
  }
  expect(tools.metadata.labels).toBeUndefined()
})

test('every file of the folder is part of a kustomization, or named by the documentation', async () => {
  const files = (await runWell(['find', FOLDER, '-name', '*.yaml', '-not', '-name', 'kustomization.yaml'])).trim()
  const listed = await Promise.all(
    ['base', 'sqlite', 'postgres'].map(async (name) => {
      const { resources } = await yamlInContrib(`${FOLDER}/${name}/kustomization.yaml`)
      return resources.map((file: string) => `${FOLDER}/${name}/${file}`)
    }),
  )
  const pages = (await Promise.all(PAGES.map(readPage))).join()

  for (const file of APPLIED_ALONE) expect(pages).toContain(file)
  expect(files.split('\n').filter((file) => ![...listed.flat(), ...APPLIED_ALONE].includes(file))).toEqual([])
})
