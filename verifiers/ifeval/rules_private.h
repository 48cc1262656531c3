/* rules_private: the rules of the table in instructions.c, by family. docs/verifiers/ifeval.md says each in words; kwargs
 * come in the order of their row. */
#ifndef VERIFIERS_IFEVAL_RULES_PRIVATE_H
#define VERIFIERS_IFEVAL_RULES_PRIVATE_H

#include "verifiers/ifeval/instruction.h"

#define RULE(name) bool name(struct passage *passage, const struct kwarg *kwarg __attribute__((unused)))

/* keywords.c */
RULE(has_keywords);
RULE(has_keyword_often);
RULE(has_no_forbidden_word);
RULE(has_letter_often);
RULE(has_keyword_once);
RULE(has_keywords_once_and_twice);
RULE(has_keywords_primes_often);
RULE(has_no_such_word);
RULE(has_keyword_in_sentence);
RULE(has_keyword_at_place);
RULE(has_keyword_second);
RULE(starts_with_word);
RULE(starts_sentences_with_word);
RULE(ends_with_word);
RULE(ends_sentences_with_word);
RULE(starts_and_ends_alike);

/* lengths.c */
RULE(has_sentences);
RULE(has_paragraphs);
RULE(has_two_paragraphs);
RULE(has_two_blocks);
RULE(has_words);
RULE(has_words_between);
RULE(has_paragraph_with_first_word);
RULE(has_letters);
RULE(has_few_small_words);
RULE(has_composed_paragraphs);
RULE(has_three_even_sentences);
RULE(has_growing_sentences);

/* content.c */
RULE(has_placeholders);
RULE(has_postscript);
RULE(has_bullets);
RULE(is_constrained_response);
RULE(has_highlights);
RULE(has_sections);
RULE(is_json);
RULE(has_title);
RULE(has_two_responses);
RULE(ends_with_phrase);
RULE(is_quoted);
RULE(has_no_comma);
RULE(has_no_dot);
RULE(has_no_exclamation);

/* letters.c */
RULE(has_capital_words);
RULE(is_in_language);
RULE(is_capital_english);
RULE(is_small_english);
RULE(is_in_title_case);
RULE(has_three_vowels);
RULE(has_consonant_clusters);
RULE(follows_alphabet);
RULE(has_no_letters_alike);
RULE(has_no_letters_in_order);
RULE(has_growing_alliteration);
RULE(has_prime_lengths);

/* copies.c */
RULE(repeats_prompt);
RULE(is_prompt);
RULE(is_prompt_often);
RULE(is_span);
RULE(is_changed_prompt);
RULE(is_own_sentence);
RULE(has_changed_phrases);

/* counts.c */
RULE(has_unique_words);
RULE(has_only_unique_words);
RULE(has_few_repeats);
RULE(has_conjunctions);
RULE(has_person_names);
RULE(has_numbers);
RULE(has_all_punctuation);
RULE(has_japanese_words);
RULE(has_pronouns);
RULE(has_palindrome);
RULE(has_ten_palindromes);
RULE(has_few_stop_words);
/* overlap.c */
RULE(has_overlap);

/* sentence_kinds.c */
RULE(has_sentence_types);
RULE(has_balanced_sentences);
RULE(chains_sentences);
RULE(frames_paragraphs);

/* layout.c */
RULE(nests_brackets);
RULE(nests_quotes);
RULE(is_option);
RULE(has_words_on_lines);
RULE(has_emoji_behind_sentences);
RULE(is_indented);
RULE(explains_quotes);
RULE(has_list_marks);
RULE(has_thesis);
RULE(has_sub_bullets);
RULE(has_sentences_then_bullets);
RULE(follows_template);
RULE(has_no_space);
RULE(joins_sentences);
RULE(has_bracketed_words);
RULE(has_wrapped_bigrams);

/* custom.c */
RULE(counts_sevens);
RULE(asks_four_questions);
RULE(lists_countries_backwards);
RULE(reverses_words);
RULE(reverses_characters);
RULE(tells_alphabet);
RULE(lists_capitals);
RULE(lists_dates);

/* csv.c */
RULE(is_city_csv);
RULE(is_special_csv);
RULE(is_quoted_csv);

/* Needs knowledge that no rule has: sets `undecided`. */
RULE(is_not_decided);

/* Is the number as the relation says? */
static inline bool compares(int64_t number, const struct kwarg *relation, const struct kwarg *wanted)
{
    return relation->whole == RELATION_LESS_THAN  ? number < wanted->whole
           : relation->whole == RELATION_AT_LEAST ? number >= wanted->whole
                                                  : number == wanted->whole;
}

/* json_text.c: is it one JSON text (RFC 8259), of any depth, with numbers of any size? */
bool is_json_text(struct text text);

/* word_set.c: how often each word was there. */
struct word_set {
    struct word_slot *slots;
    size_t capacity; /* a power of two */
    size_t count;    /* of different words */
    uint64_t salt;
};
/* How often it has been added, this time included. The text, of less than 4 GiB, must stay. */
size_t word_set_add(struct word_set *set, struct text word);
void word_set_finish(struct word_set *set);
#define _cleanup_word_set_ _cleanup_(word_set_finish)

#endif
