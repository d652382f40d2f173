import { join } from 'node:path'
import { makeFolder } from '../../support/folder.ts'
import { runWell } from '../run.ts'

/** The Go modules that describe the kinds of objects. Go downloads each of them once and keeps it. */
const KUBERNETES = 'k8s.io/kubernetes@v1.34.2'
const PROMETHEUS_OPERATOR = 'github.com/prometheus-operator/prometheus-operator@v0.85.0'

/** A JSON schema, as OpenAPI writes it. */
interface Schema {
  readonly properties?: unknown
  readonly additionalProperties?: unknown
  readonly format?: string
  readonly 'x-kubernetes-group-version-kind'?: readonly Kind[]
}

interface Kind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** The part of a CustomResourceDefinition that is read here. */
interface CustomResource {
  readonly group: string
  readonly names: { readonly kind: string }
  readonly versions: readonly { readonly name: string; readonly schema: { readonly openAPIV3Schema: Schema } }[]
}

/** Writes JSON schemas of all kinds of Kubernetes, of ServiceMonitor and PrometheusRule, as kubeconform reads them. They refuse unknown fields. */
export async function makeSchemas() {
  const folder = makeFolder()
  const write = (name: string, schema: unknown) =>
    Bun.write(join(folder.path, `${name}.json`), JSON.stringify(schema, strictly))
  const swagger = Bun.file(await fileOf(KUBERNETES, 'api/openapi-spec/swagger.json'))
  const { definitions }: { readonly definitions: Readonly<Record<string, Schema>> } = await swagger.json()
  await write('definitions', { definitions })
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions)) {
    for (const kind of kinds) await write(nameOf(kind), { $ref: `definitions.json#/definitions/${name}` })
  }
  for (const resource of ['servicemonitors', 'prometheusrules']) {
    const file = `example/prometheus-operator-crd/monitoring.coreos.com_${resource}.yaml`
    // The file has the form of all definitions of the cluster's API.
    const text = await Bun.file(await fileOf(PROMETHEUS_OPERATOR, file)).text()
    const { spec } = Bun.YAML.parse(text) as { readonly spec: CustomResource }
    for (const { name, schema } of spec.versions) {
      await write(nameOf({ group: spec.group, version: name, kind: spec.names.kind }), schema.openAPIV3Schema)
    }
  }
  return {
    /** Where kubeconform finds the schema of a kind. */
    location: join(folder.path, '{{.ResourceKind}}{{.KindSuffix}}.json'),
    [Symbol.dispose]: folder[Symbol.dispose],
  }
}

/** The path of a file in a Go module. */
async function fileOf(module: string, path: string): Promise<string> {
  const { Dir }: { readonly Dir: string } = JSON.parse(await runWell(['go', 'mod', 'download', '-json', module]))
  return join(Dir, path)
}

/** The name of a kind's file, which has the first word of its group. */
const nameOf = ({ group, version, kind }: Kind): string =>
  [kind, group.split('.')[0], version].filter(Boolean).join('-').toLowerCase()

/** For `JSON.stringify`: refuses fields that a schema does not name. OpenAPI writes `int-or-string` as a string, so integers are added. */
function strictly(_: string, value: Schema | null): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value.format === 'int-or-string') return { type: ['integer', 'string'] }
  if (!('type' in value) || typeof value.properties !== 'object' || 'additionalProperties' in value) return value
  return { ...value, additionalProperties: false }
}
