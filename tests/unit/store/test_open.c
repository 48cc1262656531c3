/* Files that store_open() refuses; it leaves them as they were. */
#include "tests/unit/store/fixture.h"

#include "server/store/sqlite/database.h"
#include "server/store/sqlite/inspect.h"
#include "server/store/sqlite/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct fixture *fixture;

static void use(void **state)
{
    fixture = *state;
}

/* A database of ours with rows, closed cleanly. */
static void make_database(void)
{
    char batch_id[ID_BYTES];
    start_store(fixture);
    record_batch(fixture, 200, 1, batch_id);
    for (int64_t g = 0; g < 200; g++) {
        struct store_rollout rollout = scored_rollout(0, 1.0);
        assert_int_equal(insert(fixture, batch_id, g, &rollout), STORE_OK);
    }
    stop_store(fixture);
}

/* store_open() and store_check() refuse with this error, within 3 seconds, and leave the file as it is. */
static void assert_refused(int error, const char *word)
{
    char before[SHA256_HEX_BYTES];
    char after[SHA256_HEX_BYTES];
    struct timespec begin;
    struct timespec end;
    file_digest(fixture->path, before);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    assert_null(store_open(&fixture->options, fixture->message, &fixture->error));
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - begin.tv_sec < 3);
    if (fixture->error != error || !strstr(fixture->message, word))
        fail_msg("error %d (%s), not %d with '%s'", fixture->error, fixture->message, error, word);
    assert_non_null(strstr(fixture->message, "record.db"));
    assert_int_equal(store_check(&fixture->options, fixture->message), -error);
    file_digest(fixture->path, after);
    assert_string_equal(before, after);
}

static void write_at(off_t offset, const void *bytes, size_t length)
{
    int fd = open(fixture->path, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, length, offset), length);
    close(fd);
}

static void test_an_absent_and_an_empty_file_are_fresh_databases(void **state)
{
    use(state);
    assert_int_equal(store_check(&fixture->options, fixture->message), 0);
    assert_int_equal(access(fixture->path, F_OK), -1);
    start_store(fixture);
    stop_store(fixture);
    assert_int_equal(unlink(fixture->path), 0);
    write_at(0, "", 0);
    start_store(fixture);
    assert_int_equal(fixture->store->owner_epoch, 1);
}

static void test_a_file_that_is_open_is_refused_and_the_message_says_who_has_it(void **state)
{
    use(state);
    make_database();
    start_store(fixture);
    char pid[32];
    snprintf(pid, sizeof(pid), "process %ld", (long)getpid());
    assert_null(store_open(&fixture->options, fixture->message, &fixture->error));
    assert_int_equal(fixture->error, EWOULDBLOCK);
    assert_non_null(strstr(fixture->message, pid));
    stop_store(fixture);
    start_store(fixture); /* and is free again afterwards */
}

static void test_a_second_name_of_an_open_file_is_refused_too(void **state)
{
    use(state);
    char link_path[160];
    snprintf(link_path, sizeof(link_path), "%s/other-name.db", fixture->directory);
    start_store(fixture);
    assert_int_equal(symlink(fixture->path, link_path), 0);
    struct store_options options = fixture->options;
    options.path = link_path;
    assert_null(store_open(&options, fixture->message, &fixture->error));
    assert_int_equal(fixture->error, EWOULDBLOCK);
}

/* SQLite makes it at the link's place, with its log beside it: the lock and what is looked at before stand there, too. */
static void test_a_link_to_a_file_that_is_not_there_leads_to_its_place(void **state)
{
    use(state);
    char link_path[160];
    char second_path[160];
    char restoring[160];
    snprintf(link_path, sizeof(link_path), "%s/other-name.db", fixture->directory);
    snprintf(second_path, sizeof(second_path), "%s/third-name.db", fixture->directory);
    snprintf(restoring, sizeof(restoring), "%s" INSPECT_RESTORING, fixture->path);
    assert_int_equal(symlink("record.db", link_path), 0);
    assert_int_equal(symlink(link_path, second_path), 0);
    struct store_options options = fixture->options;
    fixture->options.path = second_path;
    start_store(fixture);
    assert_null(store_open(&options, fixture->message, &fixture->error));
    assert_int_equal(fixture->error, EWOULDBLOCK);
    stop_store(fixture);
    assert_int_equal(unlink(fixture->path), 0);
    int fd = open(restoring, O_WRONLY | O_CREAT, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(store_check(&fixture->options, fixture->message), -EUCLEAN);
    assert_null(store_open(&fixture->options, fixture->message, &fixture->error));
    assert_int_equal(access(fixture->path, F_OK), -1);
}

static void test_a_link_to_itself_is_refused(void **state)
{
    use(state);
    assert_int_equal(symlink("record.db", fixture->path), 0);
    assert_null(store_open(&fixture->options, fixture->message, &fixture->error));
    assert_int_equal(fixture->error, ELOOP);
}

static void test_a_statement_that_cannot_be_prepared_fails_at_its_first_step(void **state)
{
    struct database database = {0};
    use(state);
    assert_int_equal(database_open(&database, fixture->path, DATABASE_WRITER, false, 0),
                     SQLITE_OK); /* without a table */
    sqlite3_stmt *row = database_statement(&database, SQL_READ_BATCH);
    bind_text(row, 1, text_of("b_1"));
    assert_int_equal(database_status(&database, database_first(row)), STORE_UNAVAILABLE);
    database_close(&database);
}

static void test_garbage_is_refused(void **state)
{
    use(state);
    char bytes[5000];
    memset(bytes, 'x', sizeof(bytes));
    write_at(0, bytes, sizeof(bytes));
    assert_refused(EUCLEAN, "damaged");
}

static void test_a_file_cut_in_the_middle_is_refused(void **state)
{
    use(state);
    make_database();
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(truncate(fixture->path, status.st_size / 2), 0);
    assert_refused(EUCLEAN, "damaged");
}

static void test_a_file_cut_to_ten_bytes_is_refused(void **state)
{
    use(state);
    make_database();
    assert_int_equal(truncate(fixture->path, 10), 0);
    assert_refused(EUCLEAN, "damaged");
}

static void test_pages_overwritten_in_the_middle_are_found(void **state)
{
    use(state);
    make_database();
    char bytes[4 * 4096];
    memset(bytes, 0xA5, sizeof(bytes));
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    write_at(status.st_size / 4096 / 2 * 4096, bytes, sizeof(bytes));
    assert_refused(EUCLEAN, "damaged");
}

static void test_a_newer_version_is_refused_and_not_migrated_down(void **state)
{
    use(state);
    make_database();
    assert_int_equal(by_hand(fixture, "PRAGMA user_version = 99"), SQLITE_OK);
    assert_refused(EPROTONOSUPPORT, "99");
    assert_int_equal(number_by_hand(fixture, "PRAGMA user_version"), 99);
}

static void test_another_program_s_database_is_refused(void **state)
{
    use(state);
    assert_int_equal(by_hand(fixture, "CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)"), SQLITE_OK);
    assert_refused(EMEDIUMTYPE, "another program");
    assert_int_equal(by_hand(fixture, "PRAGMA application_id = 77"), SQLITE_OK);
    assert_refused(EMEDIUMTYPE, "another program");
}

static void test_a_directory_or_a_missing_directory_is_refused(void **state)
{
    use(state);
    struct store_options options = fixture->options;
    options.path = "/nonexistent-directory/record.db";
    assert_null(store_open(&options, fixture->message, &fixture->error));
    assert_int_equal(fixture->error, ENOENT);
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_null(store_open(&fixture->options, fixture->message, &fixture->error));
    assert_non_null(strstr(fixture->message, "record.db"));
}

/* In a child, because only root can become somebody who may not write. */
static int open_as_nobody(void)
{
    pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
            _exit(99);
        struct store *store = store_open(&fixture->options, fixture->message, &fixture->error);
        _exit(store ? 0 : fixture->error);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void test_a_place_that_cannot_be_written_is_refused(void **state)
{
    use(state);
    make_database();
    char lock_path[160];
    snprintf(lock_path, sizeof(lock_path), "%s-lock", fixture->path);
    assert_int_equal(chmod(fixture->path, 0444), 0);
    assert_int_equal(chmod(fixture->directory, 0555), 0);
    assert_int_equal(open_as_nobody(), EACCES);
    assert_int_equal(chmod(fixture->directory, 0777), 0);
    assert_int_equal(chmod(lock_path, 0666), 0);
    assert_int_equal(open_as_nobody(), EACCES);
    assert_int_equal(chmod(fixture->path, 0666), 0);
    assert_int_equal(open_as_nobody(), 0);
}

static void test_network_file_systems_are_known_by_their_numbers(void **state)
{
    (void)state;
    assert_string_equal(inspect_network_name(0x6969), "NFS");
    assert_string_equal(inspect_network_name(0xFF534D42), "CIFS");
    assert_string_equal(inspect_network_name(0x65735546), "FUSE");
    assert_null(inspect_network_name(0xEF53));     /* ext4 */
    assert_null(inspect_network_name(0x01021994)); /* tmpfs */
    assert_null(inspect_network_name(0x794C7630)); /* overlayfs */
}

static void test_a_check_of_a_running_service_s_database_passes_and_writes_nothing(void **state)
{
    use(state);
    make_database();
    start_store(fixture);
    assert_int_equal(store_check(&fixture->options, fixture->message), 0);
    stop_store(fixture);
    char before[SHA256_HEX_BYTES];
    char after[SHA256_HEX_BYTES];
    file_digest(fixture->path, before);
    assert_int_equal(store_check(&fixture->options, fixture->message), 0);
    file_digest(fixture->path, after);
    assert_string_equal(before, after);
    char wal[160];
    snprintf(wal, sizeof(wal), "%s-wal", fixture->path);
    assert_int_equal(access(wal, F_OK), -1);
}

static void test_odd_characters_in_the_path_are_only_characters(void **state)
{
    use(state);
    snprintf(fixture->path, sizeof(fixture->path), "%s/a?mode=memory&b%%20#c.db", fixture->directory);
    make_database();
    assert_int_equal(access(fixture->path, F_OK), 0);
    start_store(fixture);
    assert_int_equal(fixture->store->owner_epoch, 2);
}

#define CLAIM(function) cmocka_unit_test_setup_teardown(function, fixture_directory, fixture_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLAIM(test_an_absent_and_an_empty_file_are_fresh_databases),
        CLAIM(test_a_file_that_is_open_is_refused_and_the_message_says_who_has_it),
        CLAIM(test_a_second_name_of_an_open_file_is_refused_too),
        CLAIM(test_a_link_to_a_file_that_is_not_there_leads_to_its_place),
        CLAIM(test_a_link_to_itself_is_refused),
        CLAIM(test_a_statement_that_cannot_be_prepared_fails_at_its_first_step),
        CLAIM(test_garbage_is_refused),
        CLAIM(test_a_file_cut_in_the_middle_is_refused),
        CLAIM(test_a_file_cut_to_ten_bytes_is_refused),
        CLAIM(test_pages_overwritten_in_the_middle_are_found),
        CLAIM(test_a_newer_version_is_refused_and_not_migrated_down),
        CLAIM(test_another_program_s_database_is_refused),
        CLAIM(test_a_directory_or_a_missing_directory_is_refused),
        CLAIM(test_a_place_that_cannot_be_written_is_refused),
        CLAIM(test_network_file_systems_are_known_by_their_numbers),
        CLAIM(test_a_check_of_a_running_service_s_database_passes_and_writes_nothing),
        CLAIM(test_odd_characters_in_the_path_are_only_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
