import { FromNodePackageJson, License } from '@cyclonedx/cyclonedx-library/Contrib'
import { ComponentType } from '@cyclonedx/cyclonedx-library/Enums'
import { Bom, Component, LicenseRepository, Metadata } from '@cyclonedx/cyclonedx-library/Models'
import { JSON as CycloneJson, JsonSerializer } from '@cyclonedx/cyclonedx-library/Serialize'
import { Spec1dot6 } from '@cyclonedx/cyclonedx-library/Spec'
import { PackageURL } from 'packageurl-js'
import parseSpdx from 'spdx-expression-parse'
import manifest from '../../package.json'
import type { Part } from './bundled-packages.ts'
import { runtime } from './licenses.ts'

const licenses = new License.Factories.LicenseFactory(parseSpdx)
const components = new FromNodePackageJson.Builders.ComponentBuilder(
  new FromNodePackageJson.Factories.ExternalReferenceFactory(),
  licenses,
)

/**
 * The bill of materials of a release's executables in CycloneDX 1.6: always the same text for the same version and time. It has
 * no serial number, because each bill would need another one.
 */
export async function sbom(parts: readonly Part[], version: string, madeAt: Date): Promise<string> {
  const application = describe(manifest, version, ComponentType.Application)
  application.bomRef.value = manifest.name
  const bom = new Bom({ metadata: new Metadata({ timestamp: madeAt, component: application }) })
  bom.components.add(await runtimeComponent())
  for (const part of parts) bom.components.add(partComponent(part))
  const serializer = new JsonSerializer(new CycloneJson.Normalize.Factory(Spec1dot6))
  return `${serializer.serialize(bom, { sortLists: true, space: 2 })}\n`
}

function partComponent({ name, version, manifest }: Part): Component {
  const component = describe(manifest, version, ComponentType.Library)
  return identify(component, new PackageURL('npm', component.group, nameWithoutGroup(name), version))
}

async function runtimeComponent(): Promise<Component> {
  const { version, licenses: ids } = await runtime()
  const expression = licenses.makeExpression(ids.join(' AND '))
  const component = new Component(ComponentType.Platform, 'bun', {
    version,
    licenses: new LicenseRepository([expression]),
  })
  return identify(component, new PackageURL('github', 'oven-sh', 'bun', `bun-v${version}`))
}

/** Sets the reference of a component, because the library would use a random text. */
function identify(component: Component, url: PackageURL): Component {
  component.purl = url.toString()
  component.bomRef.value = component.purl
  return component
}

/** Describes a package by its manifest, with another version. */
function describe(manifest: { readonly name: string }, version: string, type: ComponentType): Component {
  const component = components.makeComponent({ ...manifest, version }, type)
  if (component === undefined) throw new Error(`the package.json of ${manifest.name} describes nothing`)
  return component
}

const nameWithoutGroup = (name: string): string => name.replace(/^@[^/]+\//, '')
