/* tables: the program's own tables as text; the files that tests/tools/generate writes are made of them. */
#ifndef SERVER_TABLES_PRIVATE_H
#define SERVER_TABLES_PRIVATE_H

/* name: "config" (a settings file), "routes" (method and path, one a line) or "tables" (verifiers, metrics and every closed
 * list of words, as JSON). To standard output; 0, or 1 if that cannot be written. */
int tables_print(const char *name);

#endif
