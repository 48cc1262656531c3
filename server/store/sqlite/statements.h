/* statements: the enumeration of statements.def. */
#ifndef SERVER_STORE_SQLITE_STATEMENTS_H
#define SERVER_STORE_SQLITE_STATEMENTS_H

enum statement {
#define WRITE(name, sql) SQL_##name,
#define READ(name, sql) SQL_##name,
#include "server/store/sqlite/statements.def"
#undef WRITE
#undef READ
    SQL_COUNT
};

struct statement_row {
    const char *name;
    const char *sql;
    int writes; /* belongs to the writer's connection */
};

extern const struct statement_row statement_rows[SQL_COUNT];

#endif
