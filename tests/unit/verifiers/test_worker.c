/* A real spawner and real workers behind their real filter. */
#include "tests/unit/verifiers/grade.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/base/clock.h"
#include "server/base/json_big.h"
#include "server/base/sanitizer.h"
#include "verifiers/worker/spawner.h"
#include "verifiers/worker/worker.h"

static struct spawner spawner;
static uint32_t last_id;

static struct spawner_event wait_event(void)
{
    struct pollfd polled = {spawner.fd, POLLIN, 0};
    struct spawner_event event;

    assert_int_equal(poll(&polled, 1, 10000), 1);
    spawner_receive(&spawner, &event);
    return event;
}

static int make_worker(void)
{
    struct spawner_event event;

    assert_int_equal(spawner_make_worker(&spawner, ++last_id, NULL), 0);
    event = wait_event();
    assert_int_equal(event.kind, SPAWNER_MADE);
    assert_int_equal(event.id, last_id);
    assert_int_equal(fcntl(event.fd, F_SETFL, 0), 0); /* these tests wait in their reads */
    return event.fd;
}

static void wait_ended(uint32_t id)
{
    struct spawner_event event = wait_event();
    assert_int_equal(event.kind, SPAWNER_ENDED);
    assert_int_equal(event.id, id);
}

static void send_frame(int fd, const char *bytes, size_t length_bytes)
{
    char header[REQUEST_HEADER_BYTES] = {0};

    frame_put_length(header, length_bytes);
    assert_int_equal(send(fd, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    while (length_bytes) {
        ssize_t count = send(fd, bytes, length_bytes, MSG_NOSIGNAL);
        assert_true(count > 0);
        bytes += count;
        length_bytes -= (size_t)count;
    }
}

static json_t *receive_reply(int fd)
{
    char header[FRAME_HEADER_BYTES];
    static char body[WORKER_REPLY_LIMIT_BYTES];
    size_t length_bytes;
    json_t *reply;

    assert_int_equal(recv(fd, header, sizeof header, MSG_WAITALL), sizeof header);
    length_bytes = frame_get_length(header);
    assert_true(length_bytes < sizeof body);
    assert_int_equal(recv(fd, body, length_bytes, MSG_WAITALL), length_bytes);
    reply = json_loadb(body, length_bytes, JSON_ALLOW_NUL, NULL);
    assert_non_null(reply);
    return reply;
}

static void expect_end(int fd)
{
    char byte;
    struct pollfd polled = {fd, POLLIN, 0};

    assert_int_equal(poll(&polled, 1, 10000), 1);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
}

#define REQUEST                                                                                                        \
    "{\"completion\":\"\\\\boxed{42}\",\"reference\":\"42\",\"verifiers\":[{\"name\":\"math\",\"options\":{"           \
    "\"extract\":\"auto\",\"rel_tol\":0,\"abs_tol\":0,\"percent\":\"value\",\"form\":\"any\",\"multiple\":\"last\","   \
    "\"fallback\":\"none\",\"join_boxes\":false,\"max_boxes\":null,\"decimal_comma\":false,"                           \
    "\"unicode_digits\":\"reject\",\"max_depth\":256}}]}"

static void expect_correct(int fd)
{
    json_t *reply, *verdict;

    send_frame(fd, REQUEST, strlen(REQUEST));
    reply = receive_reply(fd);
    verdict = json_array_get(json_object_get(reply, "verdicts"), 0);
    assert_string_equal(json_string_value(json_object_get(verdict, "verdict")), "correct");
    assert_true(json_number_value(json_object_get(verdict, "score")) == 1);
    assert_true(json_is_null(json_object_get(verdict, "failure")));
    json_decref(reply);
}

static int start(void **state)
{
    (void)state;
    return spawner_start(&spawner);
}

static int stop(void **state)
{
    (void)state;
    spawner_stop(&spawner);
    return 0;
}

/* Is "42 blorps" right where `about` is the rest of the request? The word is a unit only if the task has it. */
static bool knows_blorps(int fd, const char *about)
{
    _cleanup_free_ char *request =
        xasprintf("{%s,\"completion\":\"\\\\boxed{42\\\\text{ blorps}}\"%s", about, strstr(REQUEST, ",\"reference\""));
    json_t *reply;
    bool correct;

    send_frame(fd, request, strlen(request));
    reply = receive_reply(fd);
    correct = json_number_value(json_object_get(json_array_get(json_object_get(reply, "verdicts"), 0), "score")) == 1;
    json_decref(reply);
    return correct;
}

#define MESSAGE(role, content) "{\"role\":\"" role "\",\"content\":" content "}"

static void test_without_a_prompt_what_a_user_said_last_is_one(void **state)
{
    int fd = make_worker();
    (void)state;
    assert_true(knows_blorps(fd, "\"prompt\":\"How many blorps?\""));
    assert_true(knows_blorps(
        fd, "\"messages\":[" MESSAGE("user", "\"Hello\"") "," MESSAGE("user", "\"How many blorps?\"") "]"));
    assert_true(knows_blorps(
        fd, "\"messages\":[" MESSAGE("user", "[{\"type\":\"image\"},{\"text\":\"How many blorps?\"}]") "]"));
    assert_false(knows_blorps(
        fd, "\"messages\":[" MESSAGE("user", "\"How many blorps?\"") "," MESSAGE("user", "\"Well?\"") "]"));
    assert_false(knows_blorps(fd, "\"messages\":[" MESSAGE("assistant", "\"42 blorps\"") "]"));
    assert_false(
        knows_blorps(fd, "\"prompt\":\"How many?\",\"messages\":[" MESSAGE("user", "\"How many blorps?\"") "]"));
    close(fd);
    wait_ended(last_id);
}

static void test_a_worker_answers_a_thousand_requests(void **state)
{
    int fd = make_worker();
    (void)state;
    for (int i = 0; i < 1000; i++)
        expect_correct(fd);
    close(fd);
    wait_ended(last_id);
}

struct running {
    int fd;
    size_t failed;
};

static void check_in_worker(const struct case_of_file *one, void *arg)
{
    struct running *running = arg;
    const struct verifier *verifier = registry_find(text_of(one->name));
    struct verifier_problem problem;
    json_t *filled = registry_fill_options(verifier, one->options, &problem);
    json_t *reference = one->reference ? json_deep_copy(one->reference) : json_null();
    json_t *request =
        json_pack("{s:s%, s:o, s:[{s:s, s:o}]}", "completion", one->completion.data, one->completion.length_bytes,
                  "reference", reference, "verifiers", "name", one->name, "options", filled);
    char *bytes = json_big_dump(request, 0);
    struct verdict here;
    struct verifier_input input = {one->completion, TEXT_NONE, one->reference, filled, -1, -1};
    json_t *reply, *verdict;

    send_frame(running->fd, bytes, strlen(bytes));
    reply = receive_reply(running->fd);
    verdict = json_array_get(json_object_get(reply, "verdicts"), 0);
    registry_grade(verifier, &input, &here);
    assert_string_equal(json_string_value(json_object_get(verdict, "reason")), here.reason);
    assert_string_equal(json_string_value(json_object_get(verdict, "verdict")), verdict_kind_names[here.kind]);
    verdict_finish(&here);
    json_decref(reply);
    json_decref(request);
    free(bytes);
}

static void test_every_case_survives_the_filter_with_the_verdict_it_has_outside(void **state)
{
    struct running running = {make_worker(), 0};
    (void)state;
    each_case("format", check_in_worker, &running);
    each_case("math", check_in_worker, &running);
    assert_true(each_case("countdown", check_in_worker, &running) > 0);
    assert_true(each_own_file(check_in_worker, &running) > 0);
    close(running.fd);
    wait_ended(last_id);
}

/* The most memory that the newest worker has had. */
static long peak_kib(void)
{
    char path[64], line[256];
    int pid = 0;
    long peak = -1;

    snprintf(path, sizeof path, "/proc/%d/task/%d/children", spawner.pid, spawner.pid);
    FILE *children = fopen(path, "r");
    assert_non_null(children);
    while (fscanf(children, "%d", &pid) == 1)
        continue;
    fclose(children);
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    FILE *status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &peak);
    fclose(status);
    return peak;
}

/* The largest request that is read, filled up with `unit`. */
static void send_largest(int fd, const char *unit, const char *verifier)
{
    _cleanup_buffer_ struct buffer body;
    _cleanup_free_ char *end = xasprintf("\",\"reference\":\"yes\",\"verifiers\":[%s]}", verifier);

    buffer_init(&body, VERIFIER_FRAME_LIMIT_BYTES);
    buffer_append_string(&body, "{\"completion\":\"");
    while (body.length_bytes + strlen(unit) + strlen(end) <= VERIFIER_FRAME_LIMIT_BYTES)
        buffer_append_string(&body, unit);
    buffer_append_string(&body, end);
    assert_false(body.failed);
    send_frame(fd, body.data, body.length_bytes);
    json_decref(receive_reply(fd));
}

static void test_a_worker_stays_below_64_mebibytes_with_the_largest_requests(void **state)
{
    static const char exact[] = "{\"name\":\"exact\",\"options\":{}}";
    static const char math[] = "{\"name\":\"math\",\"options\":{\"extract\":\"last_number\"}}";
    static const char greedy[] = "{\"name\":\"regex\",\"options\":{\"pattern\":\"^(a|\\\\\\\\|b)+c\"}}";
    int fd = make_worker();

    (void)state;
    send_largest(fd, "a", exact);
    send_largest(fd, "\\u0001", exact);
    send_largest(fd, "\\\\boxed{", math);
    send_largest(fd, "9", math);
    send_largest(fd, "a", greedy);
    if (!UNDER_SANITIZER)
        assert_in_range(peak_kib(), 1, 64 * 1024);
    close(fd);
    wait_ended(last_id);
}

static void test_garbage_ends_the_worker_and_nobody_else(void **state)
{
    int other = make_worker();
    uint32_t other_id = last_id;
    int fd = make_worker();

    (void)state;
    send_frame(fd, "not JSON", 8);
    expect_end(fd);
    wait_ended(last_id);
    close(fd);
    expect_correct(other);
    close(other);
    wait_ended(other_id);
}

static void test_a_frame_beyond_the_limit_is_refused_before_it_is_read(void **state)
{
    char header[REQUEST_HEADER_BYTES] = {0};
    int fd = make_worker();

    (void)state;
    frame_put_length(header, (size_t)WORKER_ANSWERS_FRAME_LIMIT_BYTES + 1);
    assert_int_equal(send(fd, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    expect_end(fd);
    wait_ended(last_id);
    close(fd);
}

static void test_a_worker_is_killed_on_command_and_reaped(void **state)
{
    int fd = make_worker();
    struct spawner_event event;

    (void)state;
    assert_int_equal(spawner_kill_worker(&spawner, last_id), 0);
    event = wait_event();
    assert_int_equal(event.kind, SPAWNER_ENDED);
    assert_true(WIFSIGNALED(event.status) && WTERMSIG(event.status) == SIGKILL);
    expect_end(fd);
    close(fd);
}

static void test_workers_die_with_their_spawner(void **state)
{
    struct spawner_event event;
    int fd = make_worker();

    (void)state;
    assert_int_equal(kill(spawner.pid, SIGKILL), 0);
    expect_end(fd);
    event = wait_event();
    assert_int_equal(event.kind, SPAWNER_GONE);
    close(fd);
    spawner_stop(&spawner);
    assert_int_equal(spawner_start(&spawner), 0);
    fd = make_worker();
    expect_correct(fd);
    close(fd);
    wait_ended(last_id);
}

/* --- the lock-down, tried from inside --- */

static int status_of(void (*act)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        if (worker_lock_down(false) < 0)
            _exit(2);
        act();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static int compare_ints(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static void sort_four_kibibytes(void)
{
    int values[1024];
    for (int i = 0; i < 1024; i++)
        values[i] = 1024 - i;
    qsort(values, 1024, sizeof values[0], compare_ints);
    if (values[0] != 1)
        _exit(3);
}

static void open_a_file(void)
{
    (void)!open("/etc/passwd", O_RDONLY);
}

static void open_a_socket(void)
{
    (void)!socket(AF_INET, SOCK_STREAM, 0);
}

static void fork_a_child(void)
{
    (void)!fork();
}

static void execute_a_program(void)
{
    execl("/bin/true", "true", NULL);
}

static void kill_the_parent(void)
{
    kill(getppid(), SIGKILL);
}

static void end_as_a_library_would(void)
{
    abort(); /* FLINT does when it has no memory: the filter ends it before its signal */
}

static void map_executable_memory(void)
{
    (void)!mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* F16: ways to memory that RLIMIT_DATA does not count. */
static void map_shared_memory(void)
{
    (void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

static void map_validated_shared_memory(void)
{
    (void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0);
}

static void map_a_second_stack(void)
{
    (void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, -1, 0);
}

static void map_huge_pages(void)
{
    (void)!mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
}

static void map_a_file(void)
{
    (void)!mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0, 0);
}

static void make_a_memory_file(void)
{
    (void)!memfd_create("more", 0);
}

static void make_a_shared_segment(void)
{
    (void)!shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
}

static void attach_a_shared_segment(void)
{
    (void)!shmat(0, NULL, 0);
}

static void *map_a_page(void)
{
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        _exit(3);
    return page;
}

static void map_the_same_twice(void)
{
    (void)!mremap(map_a_page(), 0, 4096, MREMAP_MAYMOVE);
}

static void move_and_keep(void)
{
    (void)!mremap(map_a_page(), 4096, 4096, MREMAP_MAYMOVE | MREMAP_DONTUNMAP);
}

static void change_a_protection(void)
{
    (void)!mprotect(map_a_page(), 4096, PROT_READ | PROT_WRITE | PROT_EXEC);
}

/* Each of them is allowed, and gets no more than the limit. */
static void grow_by_remapping(void)
{
    if (mremap(map_a_page(), 4096, (size_t)128 << 20, MREMAP_MAYMOVE) != MAP_FAILED)
        _exit(3);
}

static void grow_by_break(void)
{
    if (sbrk((intptr_t)128 << 20) != (void *)-1)
        _exit(3);
}

static void map_many_pieces(void)
{
    size_t pieces = 0;
    while (pieces < 128 &&
           mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
        pieces++;
    if (pieces < 16 || pieces > 96)
        _exit(3);
}

/* Mappings that are never written take page tables. */
static void map_what_is_never_written(void)
{
    static const int protections[] = {PROT_NONE, PROT_READ};
    size_t mapped = 0;
    for (size_t i = 0; i < 2000; i++)
        mapped +=
            mmap(NULL, 1 << 20, protections[i % 2], MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    if (mapped > 112)
        _exit(3);
}

static void take_much_memory(void)
{
    volatile char *bytes = malloc((size_t)128 << 20);
    if (bytes)
        _exit(3);
}

static void test_sorting_more_than_a_kibibyte_is_allowed(void **state)
{
    (void)state;
    assert_int_equal(status_of(sort_four_kibibytes), 0);
}

static void test_files_sockets_processes_and_code_are_out_of_reach(void **state)
{
    static void (*const acts[])(void) = {open_a_file,           open_a_socket,   fork_a_child,
                                         execute_a_program,     kill_the_parent, map_executable_memory,
                                         end_as_a_library_would};
    (void)state;
    if (UNDER_SANITIZER)
        return; /* its runtime needs what the strict profile forbids: this is tested in the plain build */
    for (size_t i = 0; i < ARRAY_LENGTH(acts); i++) {
        int status = status_of(acts[i]);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
    }
}

static void test_memory_that_no_limit_counts_is_out_of_reach(void **state)
{
    static void (*const acts[])(void) = {
        map_shared_memory,  map_validated_shared_memory, map_a_second_stack,      map_huge_pages,     map_a_file,
        make_a_memory_file, make_a_shared_segment,       attach_a_shared_segment, map_the_same_twice, move_and_keep,
        change_a_protection};
    (void)state;
    if (UNDER_SANITIZER)
        return; /* its runtime needs what the strict profile forbids: this is tested in the plain build */
    for (size_t i = 0; i < ARRAY_LENGTH(acts); i++) {
        int status = status_of(acts[i]);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
            fail_msg("way %zu ended with status %x", i, (unsigned)status);
    }
}

static void test_memory_is_limited_whichever_way_it_is_taken(void **state)
{
    static void (*const acts[])(void) = {take_much_memory, grow_by_remapping, grow_by_break, map_many_pieces,
                                         map_what_is_never_written};
    (void)state;
    if (UNDER_SANITIZER)
        return; /* its runtime needs what the strict profile forbids: this is tested in the plain build */
    for (size_t i = 0; i < ARRAY_LENGTH(acts); i++)
        if (status_of(acts[i]) != 0)
            fail_msg("way %zu got too much", i);
}

int main(int argc, char **argv)
{
    spawner_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_worker_answers_a_thousand_requests),
        cmocka_unit_test(test_without_a_prompt_what_a_user_said_last_is_one),
        cmocka_unit_test(test_every_case_survives_the_filter_with_the_verdict_it_has_outside),
        cmocka_unit_test(test_a_worker_stays_below_64_mebibytes_with_the_largest_requests),
        cmocka_unit_test(test_garbage_ends_the_worker_and_nobody_else),
        cmocka_unit_test(test_a_frame_beyond_the_limit_is_refused_before_it_is_read),
        cmocka_unit_test(test_a_worker_is_killed_on_command_and_reaped),
        cmocka_unit_test(test_workers_die_with_their_spawner),
        cmocka_unit_test(test_sorting_more_than_a_kibibyte_is_allowed),
        cmocka_unit_test(test_files_sockets_processes_and_code_are_out_of_reach),
        cmocka_unit_test(test_memory_that_no_limit_counts_is_out_of_reach),
        cmocka_unit_test(test_memory_is_limited_whichever_way_it_is_taken),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
