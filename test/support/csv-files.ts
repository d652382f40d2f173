const QUOTE = 'a field with a quote needs quotes around it, and each quote in it twice.'
const ID = 'an id is written in digits alone, like 7 or -7.'

type CsvLine = string | { readonly id: number; readonly name: string; readonly tag?: string }

/**
 * CSV as people and spreadsheets make it, with what `import` and the page make of each line: the plant, or why it is refused. Both
 * try all of it.
 */
export const CSV_FILES: readonly (readonly [text: string, lines: Readonly<Record<number, CsvLine>>])[] = [
  ['ID,Name,TAG\r\n21,Rose,red\r\n', { 2: { id: 21, name: 'Rose', tag: 'red' } }],
  ['\ufeff\r\nsep=;\r\n\r\nTag;id;name\r\n;22;Ro,se', { 5: { id: 22, name: 'Ro,se' } }],
  ['"SEP=\t"\nid\tname\n23\t"Ro\tse"\n', { 3: { id: 23, name: 'Ro\tse' } }],
  ['id;name;tag\r\n24;Rose;\r\n;;\r\n"";"";;\r\n;\r\n', { 2: { id: 24, name: 'Rose' } }],
  ['id,name,Name\n1,Rose,Rose\n', { 1: 'the column `Name` is no field of a plant, or is there twice: leave it out.' }],
  ['id;name;colour\n', { 1: 'the column `colour` is no field of a plant, or is there twice: leave it out.' }],
  ['id, name,tag\n1, Rose,red\n', { 1: 'the column ` name` has blanks around it: leave them out.' }],
  ['ID;Name\u00a0;tag\n1;Rose;red\n', { 1: 'the column `Name\u00a0` has blanks around it: leave them out.' }],
  ['"id", "name"\n', { 1: 'the column ` "name"` has blanks around it: leave them out.' }],
  ['ID;Tag\n5;sun\n', { 1: 'the column `name` is missing: begin the file with the line id,name,tag.' }],
  ['name\nRose\n', { 1: 'the column `id` is missing: begin the file with the line id,name,tag.' }],
  ['25;Rose;red\n', { 1: 'it is CSV without its header: begin the file with the line id,name,tag.' }],
  ['Ährenlilie,"7"\n', { 1: 'it is CSV without its header: begin the file with the line id,name,tag.' }],
  [
    'id,name,tag\n1, "Ro,se"\n2,Rose,\t"red"\n3,\u00a0"Ro\n26," ""q"""  , Ivy\n27,"a, ""b"", \n ""c""",\n"28"  ,5" pot,"red"',
    {
      2: QUOTE,
      3: QUOTE,
      4: QUOTE,
      5: { id: 26, name: ' "q"', tag: ' Ivy' },
      6: { id: 27, name: 'a, "b", \n "c"' },
      8: { id: 28, name: '5" pot', tag: 'red' },
    },
  ],
  [
    `id,name\n${['007', '"1,000"', ' 1', '1.0', '9.2E+18', "'12", '-0', '٣', 'x'].map((id) => `${id},Rose`).join('\n')}\n`,
    Object.fromEntries(Array.from({ length: 9 }, (_, at) => [at + 2, ID])),
  ],
]
