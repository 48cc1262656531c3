/* Chinese units and measure words. Those of pairs and dozens, and those of ten thousands, are not among them. */
#include <string.h>

#include "server/base/cleanup.h"
#include "verifiers/math/words.h"

/* A longer word before its beginning. */
static const struct {
    const char *word, *unit;
} measures[] = {
    {"平方千米", "km^2"}, {"平方厘米", "cm^2"}, {"平方米", "m^2"}, {"立方厘米", "cm^3"}, {"立方米", "m^3"},
    {"千米", "km"},       {"公里", "km"},       {"厘米", "cm"},    {"毫米", "mm"},       {"分米", "dm"},
    {"米", "m"},          {"千克", "kg"},       {"公斤", "kg"},    {"克", "g"},          {"吨", "t"},
    {"毫升", "mL"},       {"升", "L"},          {"小时", "h"},     {"时", "h"},          {"分钟", "min"},
    {"秒", "s"},          {"个月", "month"},    {"个", ""},        {"天", "day"},        {"日", "day"},
    {"周", "week"},       {"月", "month"},      {"年", "year"},    {"岁", "year"},       {"美元", "dollar"},
    {"元", "yuan"},       {"人", "people"},     {"度", "degree"},  {"每", "per"},        {"只", ""},
    {"本", ""},           {"张", ""},           {"条", ""},        {"块", ""},           {"名", ""},
    {"次", ""},           {"种", ""},           {"位", ""},        {"件", ""},           {"辆", ""},
    {"棵", ""},           {"支", ""},           {"根", ""},        {"头", ""},           {"颗", ""},
    {"朵", ""},           {"项", ""},           {"组", ""},        {"题", ""},           {"页", ""},
};

size_t math_measure_word(struct text text, const char **ret_unit)
{
    for (size_t i = 0; i < ARRAY_LENGTH(measures); i++) {
        size_t length = strlen(measures[i].word);
        *ret_unit = measures[i].unit;
        if (text.length_bytes >= length && memcmp(text.data, measures[i].word, length) == 0)
            return length;
    }
    return 0;
}
