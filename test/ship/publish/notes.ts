import { join } from 'node:path'
import { PROJECT } from '../run.ts'

/** `bun test/ship/publish/notes.ts VERSION`: prints the section of a version in CHANGELOG.md, for the page of its release. */
export function releaseNotes(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((each) => each.startsWith(`[${version}] - `))
  const [, ...lines] = section?.split('\n') ?? []
  const text = lines.join('\n').trim()
  if (text === '') throw new Error(`CHANGELOG.md has no section [${version}] with a date and text`)
  return `${text}\n`
}

if (import.meta.main) {
  const changelog = await Bun.file(join(PROJECT, 'CHANGELOG.md')).text()
  process.stdout.write(releaseNotes(changelog, process.argv[2] ?? ''))
}
