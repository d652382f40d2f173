import { README } from '../support/readme.ts'

/** A file that the README shows after a comment with the name of the file. */
export const readmeFile = (name: string): Promise<string> => blockAfter(`file: ${name}`)

/** Such a file, which is YAML. */
// biome-ignore lint/suspicious/noExplicitAny: tests compare it as a whole
export async function readmeYaml(name: string): Promise<any> {
  return Bun.YAML.parse(await readmeFile(name))
}

/** The commands that the README shows for a file. */
export const readmeCommands = (name: string): Promise<string> => blockAfter(`commands of: ${name}`)

async function blockAfter(comment: string): Promise<string> {
  const readme = await Bun.file(README).text()
  const [, after] = readme.split(`<!-- ${comment} -->\n`)
  const block = /^```\w+\n([\s\S]*?)^```$/m.exec(after ?? '')
  if (block?.[1] === undefined || block.index !== 0) throw new Error(`the README has no block after ${comment}`)
  return block[1]
}
